"""The program that an actor starts on a node: it runs a command, and ends it with all of its descendants.

The actor holds the other ends of its standard input and output: the supervisor exits when the actor has ended for any
reason, and the actor notices when the supervisor has ended. The supervisor is not a child of the actor, whose children
Ray kills, and it needs only Python.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

_SET_CHILD_SUBREAPER = 36
_GRACE_SECONDS = 15.0
"""Seconds from SIGTERM, upon which the command stops containers, to SIGKILL."""
_KILL_SECONDS = 10.0


def main(seconds: float, command: list[str]) -> None:
    """Run a command for a limited number of seconds, while standard input is open."""
    if os.fork():
        os._exit(0)
    os.setsid()
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    awake, waking = os.pipe()
    os.set_blocking(awake, False)
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: None)
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    child = os.posix_spawn(command[0], command, os.environ, file_actions=null, setsigdef=(signal.SIGPIPE,))

    def ended(until: float, *, heed: bool) -> bool:
        """Wait for the command; return whether it has ended."""
        waiting = select.poll()  # unlike `select`, it accepts descriptors above 1,023
        for file in (0, awake) if heed else (awake,):
            waiting.register(file, select.POLLIN)
        while (left := until - time.monotonic()) > 0:
            if child in _reaped():
                return True
            ready = [file for file, _ in waiting.poll(1000 * left)]
            if awake in ready and signal.SIGTERM in os.read(awake, 4096) and heed:
                return False
            if 0 in ready and not os.read(0, 4096):
                return False
        return False

    if not ended(time.monotonic() + seconds, heed=True):
        for number in (signal.SIGTERM, signal.SIGCONT):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)
        ended(time.monotonic() + _GRACE_SECONDS, heed=False)
    _kill(_below)


def _reaped() -> set[int]:
    """Return the ids of the processes that have ended since the last call."""
    reaped = set()
    with contextlib.suppress(ChildProcessError):
        while number := os.waitpid(-1, os.WNOHANG)[0]:
            reaped.add(number)
    return reaped


def _below() -> set[int]:
    """Return all descendants, including those that left their session: they are reparented to this process."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:2]
            parents[int(folder.name)] = int(parent) if state != b"Z" else 0
    below = {os.getpid()}
    while new := {number for number, parent in parents.items() if parent in below} - below:
        below |= new
    return below - {os.getpid()}


def _kill(members: Callable[[], Iterable[int]]) -> None:
    """Kill processes that may keep forking: all are stopped before any is killed."""
    until = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < until:
        stopped: set[int] = set()
        while new := set(members()) - stopped:
            _send(new, signal.SIGSTOP)
            stopped |= new
        if not stopped:
            return
        _send(stopped, signal.SIGKILL)
        time.sleep(0.02)
        _reaped()


def _send(numbers: Iterable[int], signal_number: int) -> None:
    for number in numbers:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(number, signal_number)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
