"""A started agent: one container, observed through its first process; podman is called only to change something."""

from __future__ import annotations

import fcntl
import os
import re
import select
import time
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from mleredux.errors import SandboxError
from mleredux.plugin.sandbox import Exit, Usage
from mleredux_containers import exit_of

from mleredux_sandbox_podman.control_group import ControlGroup
from mleredux_sandbox_podman.engine import call, remove, state_of

OUT_OF_MEMORY = "oom"
"""File that conmon before 2.1.13 creates in the working directory of `podman run` when a container runs out of memory;
later versions write it where podman itself finds it."""
_END_SECONDS = 60
_GONE = Exit(code=None, signal=9)


class PodmanHandle:
    """Implements `mleredux.plugin.sandbox.Handle` for a container.

    Args:
        container: The container's id.
        control: The launch's control folder, in which `podman run` was called.
        log: The run's log, locked by the process that writes the container's output to it.
    """

    def __init__(self, container: str, control: Path, log: Path) -> None:
        self.id, self._control, self._log = container, control, log
        self._exit: Exit | None = None
        self._closed = False
        state = state_of(container)
        started = re.sub(r"(\.\d{6})\d+", r"\1", state.get("StartedAt", ""))
        self.started_at = datetime.fromisoformat(started).timestamp() if started else time.time()
        self._process: int | None = None
        pid = int(state.get("Pid") or 0)
        if pid:
            with suppress(OSError):  # it has ended
                self._process = os.pidfd_open(pid)
        self._group = ControlGroup(pid)

    def poll(self) -> Exit | None:
        """Return how the agent ended, or None while it runs."""
        if self._exit is None and not self._running():
            state = state_of(self.id)
            ended = exit_of(state) if state else _GONE
            if ended is not None and ended.code != 0 and (self._control / OUT_OF_MEMORY).exists():
                ended = replace(ended, out_of_memory=True)
            self._exit = ended
        return self._exit

    def usage(self) -> Usage:
        """Return the resources used so far, from the container's control group."""
        return self._group.usage()

    def terminate(self) -> None:
        """Ask the agent to stop: init forwards SIGTERM to it."""
        self._signal("TERM")

    def kill(self) -> None:
        """Kill all processes of the container."""
        self._signal("KILL")

    def close(self) -> None:
        """Stop the container, wait for the rest of its output, and remove it with its volumes."""
        if self._closed:
            return
        if self.poll() is None:
            self.kill()
        until = time.monotonic() + _END_SECONDS
        while self.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        remove(self.id)
        self._closed = True
        if self._process is not None:
            os.close(self._process)
            self._process = None
        wait_for_log(self._log, _END_SECONDS)

    def _running(self) -> bool:
        if self._process is None:
            return False
        ended = select.poll()  # unlike `select`, it accepts descriptors above 1,023
        ended.register(self._process, select.POLLIN)
        return not ended.poll(0)

    def _signal(self, name: str) -> None:
        if not self._closed and self._running():
            problem = f"Container {self.id[:12]} can't be sent SIG{name}"
            try:
                call(problem, "kill", f"--signal={name}", self.id, absent=True)
            except SandboxError:
                if self._running():  # otherwise it has ended in the meantime
                    raise


def wait_for_log(log: Path, seconds: float) -> None:
    """Wait until no process writes a container's output to a log.

    Raises:
        SandboxError: The output does not end.
    """
    until = time.monotonic() + seconds
    with log.open("ab") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > until:
                    raise SandboxError(f"The output of a container does not end; {log} may be incomplete.") from None
                time.sleep(0.02)
