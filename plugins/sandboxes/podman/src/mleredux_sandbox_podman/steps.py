"""Limit, measure and stop the steps of a podman build, which run as separate containers under the podman process."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
from mleredux_containers import Watch

from mleredux_sandbox_podman.control_group import parts_of

_POLL_SECONDS = 0.1


class Steps:
    """Limits and measures the steps if neither a control group nor a separate disk can do so, for example without root.

    Args:
        watch: The watch of the build.
        processes: Maximum number of processes of each step; None if they are already limited.
        measured: Whether to measure the size of written files.
    """

    def __init__(self, watch: Watch, processes: int | None, *, measured: bool) -> None:
        self._watch, self._processes, self._measured = watch, processes, measured

    def watch(self, podman: int) -> None:
        """Limit and measure the steps of a process, until its build has ended."""
        if self._measured:
            self._watch.size = lambda: next(map(_written, _steps(podman)), 0)
        if self._processes is not None:
            threading.Thread(target=self._limit_all, args=(podman,), daemon=True).start()

    def _limit_all(self, podman: int) -> None:
        while not self._watch.ended.wait(_POLL_SECONDS):
            for step in _steps(podman):
                with suppress(OSError, KeyError, ValueError):
                    group, own = parts_of(step)["pids"], parts_of(os.getpid()).get("pids")
                    if group != own:
                        (group / "pids.max").write_text(str(self._processes))


def end_steps(podman: int) -> None:
    """Kill processes under a build that run in other sessions: its containers."""
    steps = list(_steps(podman))
    for step in steps:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(step, signal.SIGKILL)
    if not steps:
        with suppress(ProcessLookupError):
            os.killpg(podman, signal.SIGTERM)


def _steps(podman: int) -> Iterator[int]:
    """Yield the processes under a build that are in other sessions than podman: those of its containers."""
    with suppress(psutil.Error):
        for process in psutil.Process(podman).children(recursive=True):
            with suppress(psutil.Error, OSError):
                if os.getsid(process.pid) != podman:
                    yield process.pid


def _written(step: int) -> int:
    """Return the bytes that a step's container has written: the size of the upper folder of its root overlay."""
    total = 0
    with suppress(OSError):
        root = next(line for line in Path(f"/proc/{step}/mountinfo").read_text().splitlines() if " / / " in line)
        upper = next(part for part in root.split(",") if part.startswith("upperdir=")).removeprefix("upperdir=")
        for parent, _folders, names in os.walk(upper):
            for name in names:
                with suppress(OSError):
                    total += (Path(parent) / name).lstat().st_blocks * 512
    return total
