"""Processes of this machine: telling them apart permanently, and ending whole families of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil


def birth(pid: int) -> float | None:
    """When a process began, in a unit of the machine's own; None where there is none of that number.

    With the number it names a process permanently, numbers being used again. Unlike psutil's creation time it does not
    move when the clock is set.
    """
    try:
        return float(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        pass
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None


def end_family(members: Callable[[], Iterable[psutil.Process]], *, seconds: float = 5.0) -> None:
    """Kill processes that may go on forking: first all are stopped, until no new ones appear, then all are killed.

    Args:
        members: Asked again and again who is there.
        seconds: After that time, go without waiting for the rest to vanish.
    """
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        stopped: set[int] = set()
        while new := [process for process in members() if process.pid not in stopped]:
            for process in new:
                stopped.add(process.pid)
                _signal(process.suspend)
            if time.monotonic() > until:
                break
        left = list(members())
        if not left:
            return
        for process in left:
            _signal(process.kill)
        time.sleep(0.01)


def living(process: psutil.Process) -> bool:
    """Whether it runs, and is not only waiting to be reaped."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _signal(send: Callable[[], None]) -> None:
    try:
        send()
    except (psutil.Error, OSError):
        return
