"""Broken sandboxes: no run is started in them until they respond again, and their leftovers are removed."""

from __future__ import annotations

import threading

import structlog

from mleredux_server.scheduler.startup import sweep_sandbox
from mleredux_server.service import Service

_LOG = structlog.get_logger()
_AGAIN = 2.0


class BrokenSandboxes:
    """Handles sandboxes in which a run's environment broke, for example because an engine was restarted or a disk was
    full.

    Args:
        service: The service.
        stopping: Set when the server ends.
    """

    def __init__(self, service: Service, stopping: threading.Event) -> None:
        self._service, self._stopping = service, stopping
        self._lock = threading.Lock()
        self._broken: dict[str, str] = {}

    def suspect(self, sandbox: str) -> None:
        """Have a sandbox checked before anything else is started in it."""
        with self._lock:
            first = not self._broken
            self._broken.setdefault(sandbox, f"the sandbox {sandbox}, in which a run's environment broke")
        if first:
            threading.Thread(target=self._sweep_until_working, name="sandboxes", daemon=True).start()

    def known(self) -> dict[str, str]:
        """Return the sandboxes in which nothing may be started now, each with the reason to display for its runs."""
        with self._lock:
            return dict(self._broken)

    def _sweep_until_working(self) -> None:
        """Retry the cleanup of each sandbox until it succeeds: then the sandbox responds, and no container is left."""
        while not self._stopping.is_set():
            for name in self.known():
                try:
                    if name in self._service.catalogue.entries("sandboxes"):
                        sweep_sandbox(self._service, name)
                except Exception as error:  # any plugin error: giving up would make all its runs wait
                    _LOG.warning("a sandbox is not working", sandbox=name, reason=str(error))
                    with self._lock:
                        self._broken[name] = f"the sandbox {name}, which does not work now"
                    continue
                with self._lock:
                    del self._broken[name]
                    done = not self._broken
                self._service.wake.set()
                if done:
                    return
            self._stopping.wait(_AGAIN)
