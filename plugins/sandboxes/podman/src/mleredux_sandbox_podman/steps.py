"""The steps of a build of podman's, which run below it as containers of their own: limited, measured, and ended."""

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

_LOOK_SECONDS = 0.1


class Steps:
    """Limits and measures the steps where neither a control group nor a disk of their own can, as without root.

    Args:
        watch: Of the build.
        processes: Of each step; None where they are limited already, which podman's builder can't.
        measured: Whether to measure what they write.
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
        while not self._watch.ended.wait(_LOOK_SECONDS):
            for step in _steps(podman):
                self._limit(step)

    def _limit(self, step: int) -> None:
        with suppress(OSError, KeyError, ValueError):
            group, own = parts_of(step)["pids"], parts_of(os.getpid()).get("pids")
            if group != own:
                (group / "pids.max").write_text(str(self._processes))


def end_steps(podman: int) -> None:
    """End what runs below a build in sessions of its own: its containers."""
    found = list(_steps(podman))
    for step in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(step, signal.SIGKILL)
    if not found:
        with suppress(ProcessLookupError):
            os.killpg(podman, signal.SIGTERM)


def _steps(podman: int) -> Iterator[int]:
    """Processes below a build that are in another session than podman: those of its containers."""
    with suppress(psutil.Error):
        for process in psutil.Process(podman).children(recursive=True):
            with suppress(psutil.Error, OSError):
                if os.getsid(process.pid) != podman:
                    yield process.pid


def _written(step: int) -> int:
    """Bytes that a step's container has written: the upper folder of its root's overlay."""
    total = 0
    with suppress(OSError):
        root = next(line for line in Path(f"/proc/{step}/mountinfo").read_text().splitlines() if " / / " in line)
        upper = next(part for part in root.split(",") if part.startswith("upperdir=")).removeprefix("upperdir=")
        for parent, _folders, names in os.walk(upper):
            for name in names:
                with suppress(OSError):
                    total += (Path(parent) / name).lstat().st_blocks * 512
    return total
