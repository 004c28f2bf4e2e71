"""The steps of a build of podman's, which run below it as containers of their own: limited, measured, and ended."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
from mleredux_containers import BuildLimits

from mleredux_sandbox_podman.control_group import parts_of

_LOOK_SECONDS, _MEASURE_SECONDS = 0.1, 2.0


class Steps:
    """Limits and measures the steps where neither a control group nor a disk of their own can, as without root.

    Args:
        limits: Of each step.
        measured: Whether to measure what they write.
        limited: Whether their processes are limited already, which podman's builder can't.

    Attributes:
        too_large: Whether a step wrote more than it may.
        ended: Set when the build has ended.
    """

    def __init__(self, limits: BuildLimits, *, measured: bool, limited: bool) -> None:
        self._limits, self._measured, self._limited = limits, measured, limited
        self.too_large, self.ended = False, threading.Event()

    def watch(self, podman: int, stop: Callable[[], None]) -> None:
        """Watch the build of a process, in a thread of its own, and stop it when a step writes too much."""
        if self._measured or not self._limited:
            threading.Thread(target=self._watch, args=(podman, stop), daemon=True).start()

    def _watch(self, podman: int, stop: Callable[[], None]) -> None:
        measured = time.monotonic()
        while not self.ended.wait(_LOOK_SECONDS):
            steps = list(_steps(podman))
            for step in () if self._limited else steps:
                self._limit(step)
            if self._measured and time.monotonic() - measured > _MEASURE_SECONDS:
                if any(_written(step) > self._limits.disk for step in steps[:1]):
                    self.too_large = True
                    stop()
                    return
                measured = time.monotonic()

    def _limit(self, step: int) -> None:
        with suppress(OSError, KeyError, ValueError):
            group, own = parts_of(step)["pids"], parts_of(os.getpid()).get("pids")
            if group != own:
                (group / "pids.max").write_text(str(self._limits.processes))


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
