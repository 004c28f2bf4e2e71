"""Processes on this machine: unique identification, and ending whole process trees."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import psutil

from mleredux._core.launcher import LISTED, children, stop_below

_PAGE, _TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
_ZOMBIE = b"Z"
_PROPORTIONAL = re.compile(rb"^Pss: +(\d+) kB", re.MULTILINE)
_VANISH_SECONDS = 5.0
"""Maximum time to wait until killed processes have disappeared, in seconds."""


class Member(NamedTuple):
    """A live descendant of a process.

    Attributes:
        born: Its `birth`.
        memory: Resident bytes.
        cpu_seconds: User and system time.
        stack: Where its stack begins: the same only in forks of one process; 0 if unknown.
    """

    pid: int
    born: float
    memory: int
    cpu_seconds: float
    stack: int = 0


def members(pid: int) -> list[Member]:
    """Return all live descendants of a process, from the kernel's lists of children if available.

    psutil reads the table of all processes for that, which takes 20 ms on a busy machine: too long for ten calls a
    second for each of many runs. While processes start and end, some may be missing.
    """
    if not LISTED:
        return [member for child in family(pid)[1:] if (member := _member(child))]
    descendants = list(filter(None, map(stat, children(pid))))
    for parent in descendants:  # the list grows during the loop
        descendants += filter(None, map(stat, children(parent.pid)))
    return descendants


def _content(path: str) -> bytes:
    try:
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(opened, 1 << 20)
    except OSError:
        return b""
    finally:
        os.close(opened)


def stat(pid: int) -> Member | None:
    """Return a process from its line in /proc; None if it has ended, or if there is no /proc."""
    facts = _content(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if len(facts) < 22 or facts[0] == _ZOMBIE:
        return None
    seconds = (int(facts[11]) + int(facts[12])) / _TICKS
    return Member(pid, float(facts[19]), int(facts[21]) * _PAGE, seconds, int(facts[25]))


def proportional(process: Member) -> int:
    """Return the resident bytes of a process; a shared page is divided among the processes that share it.

    If its pages are hidden or the kernel does not report them, all its resident bytes count. It has none if it has
    ended.
    """
    if match := _PROPORTIONAL.search(_content(f"/proc/{process.pid}/smaps_rollup")):
        return int(match[1]) << 10
    now = stat(process.pid) if LISTED else process
    return now.memory if now else 0


def _member(process: psutil.Process) -> Member | None:
    try:
        with process.oneshot():
            times, born = process.cpu_times(), birth(process.pid)
            if born is None or not is_alive(process):
                return None
            return Member(process.pid, born, process.memory_info().rss, times.user + times.system)
    except psutil.Error:
        return None


def family(pid: int) -> list[psutil.Process]:
    """Return a process, followed by all its live descendants; an empty list if it has ended."""
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        return [process for process in (root, *root.children(recursive=True)) if is_alive(process)]
    return []


def contained(pid: int) -> bool:
    """Return whether a process is in a nested PID namespace, and is not its first process, which is an init."""
    for line in _content(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"NSpid:"):
            numbers = line.split()[1:]
            return len(numbers) > 1 and numbers[-1] != b"1"
    return False


def birth(pid: int) -> float | None:
    """Return the start time of a process, in a machine-specific unit; None if no process has that id, or if it has
    ended and only waits to be reaped.

    Together with the process id it identifies a process permanently, even though ids are reused. Unlike psutil's
    creation time, it does not change when the clock is set.
    """
    if member := stat(pid):
        return member.born
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return process.create_time() if is_alive(process) else None
    return None


def end_family(members: Callable[[], Iterable[psutil.Process]], root: psutil.Process | None = None) -> None:
    """Kill processes that may keep forking: first stop all of them, until no new ones appear, then kill them all.

    Args:
        members: Returns the current processes; called repeatedly.
        root: Their common ancestor, if there is one. Each of its descendants is then stopped before its children are
            listed, because processes that live for milliseconds would end before a list of all processes is complete.
    """
    until = time.monotonic() + _VANISH_SECONDS
    while time.monotonic() < until:
        stopped: set[int] = set()
        while True:
            if root is not None and root.is_running():
                stop_below(root.pid, stopped)
            new = [process for process in members() if process.pid not in stopped]
            for process in new:
                stopped.add(process.pid)
                with contextlib.suppress(psutil.Error, OSError):
                    process.suspend()
            if not new or time.monotonic() > until:
                break
        ended = list(members())
        if not ended:
            return
        for process in ended:
            with contextlib.suppress(psutil.Error, OSError):
                process.kill()
        time.sleep(0.01)


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process is running, and is not only waiting to be reaped."""
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
