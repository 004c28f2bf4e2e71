"""A started agent: one container."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux.errors import SandboxError
from mleredux.plugin.sandbox import Exit, Usage
from mleredux_containers import OWN_PROCESSES, exit_of

from mleredux_sandbox_docker.engine import engine_errors, ignore_missing
from mleredux_sandbox_docker.transcript import AGAIN_SECONDS, LogFollower, nanoseconds

if TYPE_CHECKING:
    from docker import APIClient

_LOG_SECONDS = 60
_ANSWER_SECONDS, _REMOVE_SECONDS = 15, 120
"""How long requests about a container may take: a silent engine must not block the supervisor of a running agent."""
_MEASURE_SECONDS = 0.5
_PATIENCE = 3600.0
_GONE = Exit(code=None, signal=9)


class DockerHandle:
    """Implements `mleredux.plugin.sandbox.Handle` for a container.

    While the engine does not respond, the agent may be alive: it counts as running, signals are sent as soon as
    possible, and `waiting_for` states why nothing is known.

    Args:
        client: The engine.
        container: The container's id.
        log: The run's log.
        offset: Offset in the log at which this container's output begins, in bytes.
        noted: The file that stores how much of the output was recorded.
    """

    def __init__(self, client: APIClient, container: str, log: Path, offset: int, noted: Path) -> None:
        self._client, client.timeout = client, _ANSWER_SECONDS
        self._exit: Exit | None = None
        self._closed = self._signaled = False
        self.waiting_for: str | None = None
        self._since = self._due = float("-inf")
        self._pending: str | None = None
        self._usage, self._measured_at = Usage(), float("-inf")
        self.id = container
        self.started_at = nanoseconds(self._state()["StartedAt"]) / 1e9
        self._follower = LogFollower(container, log, offset, noted)

    def poll(self) -> Exit | None:
        """Return how the agent ended, or None while it runs."""
        if self._exit is not None or time.monotonic() < self._due:
            return self._exit
        pending = self._pending
        try:
            state = self._state()
            if pending:
                self._send(pending)
        except SandboxError as error:
            self._wait(error)
            return None
        self._exit = exit_of(state) if state else _GONE
        interrupted, self.waiting_for, self._pending = self.waiting_for and not pending, None, None
        if interrupted and self._exit and self._exit.code != 0 and not self._exit.out_of_memory:
            raise SandboxError("The agent's container ended during an outage of the Docker engine.")
        return self._exit

    def _wait(self, error: SandboxError) -> None:
        """Note that the engine does not respond; raise the error if that lasts too long."""
        now = time.monotonic()
        if self.waiting_for is None:
            self._since = now
            self.waiting_for = f"the Docker engine, which does not respond: {error.message}"
        if now - self._since > _PATIENCE:
            raise error
        self._due = now + AGAIN_SECONDS

    def usage(self) -> Usage:
        """Return the resources used so far, from the engine's statistics, at most half a second old."""
        if self._exit is not None or self._closed or self.waiting_for:
            return Usage()
        if time.monotonic() - self._measured_at >= _MEASURE_SECONDS:
            with contextlib.suppress(SandboxError):  # `poll` reports it
                self._usage, self._measured_at = self._measure(), time.monotonic()
        return self._usage

    def _measure(self) -> Usage:
        stats: dict[str, Any] = {}
        with engine_errors(f"Container {self.id[:12]} can't be measured"), ignore_missing():
            stats = self._client.stats(self.id, stream=False, one_shot=True)
        memory = stats.get("memory_stats") or {}
        if "usage" not in memory:  # it has ended
            return Usage()
        # File pages that the kernel can reclaim don't count; the name differs in cgroup version 2.
        detail = memory.get("stats") or {}
        processes = (stats.get("pids_stats") or {}).get("current")
        cached = detail.get("total_inactive_file", detail.get("inactive_file", 0))
        return Usage(
            memory_mb=(memory["usage"] - cached) / (1 << 20),
            cpu_seconds=stats["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9,
            processes=max(0, processes - OWN_PROCESSES) if processes is not None else None,
        )

    def terminate(self) -> None:
        """Ask the agent to stop: init forwards SIGTERM to it."""
        self._signal("SIGTERM")

    def kill(self) -> None:
        """Kill all processes of the container."""
        self._signal("SIGKILL")

    def close(self) -> None:
        """Stop the container, record the rest of its output, and remove it with its volumes."""
        if self._closed:
            return
        if self.poll() is None:
            self.kill()
            with engine_errors(f"Container {self.id[:12]} does not end"), ignore_missing():
                self._client.wait(self.id, timeout=_LOG_SECONDS)
        try:
            self._follower.join(_LOG_SECONDS)
        finally:
            self.poll()
            self._client.timeout = _REMOVE_SECONDS
            try:
                remove(self._client, self.id)
            except SandboxError:  # it is removed later by its labels
                self._follower.failed_at = time.monotonic()
            self._closed = True
            self._client.close()
        stopped = time.monotonic() - self._follower.failed_at < _LOG_SECONDS and not self._signaled
        if stopped and self._exit is not None and self._exit.signal:
            raise SandboxError("The agent's container ended because the Docker engine stopped.")

    def _state(self) -> dict[str, Any]:
        with engine_errors(f"The state of container {self.id[:12]} can't be read"), ignore_missing():
            return dict(self._client.inspect_container(self.id)["State"])
        return {}

    def _signal(self, name: str) -> None:
        if self._closed:
            return
        self._signaled = True
        try:
            self._send(name)
        except SandboxError as error:
            self._pending = name
            self._wait(error)

    def _send(self, name: str) -> None:
        with engine_errors(f"Container {self.id[:12]} can't be sent {name}"), ignore_missing():
            self._client.kill(self.id, signal=name)


def remove(client: APIClient, container: str | None) -> None:
    """Remove a container in any state, with its anonymous volumes."""
    if container is not None:
        with engine_errors(f"Container {container[:12]} can't be removed"), ignore_missing():
            client.remove_container(container, force=True, v=True)


def note(path: Path, container: str, offset: int) -> None:
    """Store the id of the launch's container, and the offset in the log at which its output begins."""
    path.write_text(json.dumps({"container": container, "log_offset": offset}), encoding="utf-8")


def stored_offset(path: Path, container: str) -> int:
    """Return the stored offset in the log at which the container's output begins; 0 if nothing is stored."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        noted = json.loads(path.read_text(encoding="utf-8"))
        if noted["container"] == container:
            return int(noted["log_offset"])
    return 0
