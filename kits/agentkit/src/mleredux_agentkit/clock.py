"""Enforce the deadline: by an exception in the main thread, or by ending the process while a thread is running."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple, NoReturn


class Stopped(BaseException):
    """The deadline has passed, or the agent was asked to stop. It is not an `Exception`, so no library's `except
    Exception` catches it.
    """


class Clock:
    """Raises `Stopped` in the main thread at the deadline, and at SIGTERM. Use it with libraries that signals can
    interrupt.

    Args:
        deadline: The deadline, as Unix time.
    """

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.signal(signal.SIGALRM, self._over)
        # Solutions may run in forked processes, which must be stoppable like any other.
        os.register_at_fork(after_in_child=_forget)
        signal.setitimer(signal.ITIMER_REAL, max(0.001, self.left))

    @property
    def left(self) -> float:
        """The seconds until the deadline."""
        return self.deadline - time.time()

    def close(self) -> None:
        """Stop the clock; nothing is raised afterwards."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _on_sigterm(self, _number: int, _frame: FrameType | None) -> None:
        self.close()
        raise Stopped("asked to end")

    def _over(self, _number: int, _frame: FrameType | None) -> None:
        self.close()
        raise Stopped("time is nearly up")


def _forget() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


class Ended(NamedTuple):
    """How the work ended.

    Attributes:
        stopped_by: `the deadline` or a signal's name (`SIGTERM`), None if the work ended on its own.
        error: The traceback, if the work failed.
    """

    stopped_by: str | None
    error: str | None


def work_until(deadline: float, work: Callable[[], object], each_second: Callable[[], object] | None = None) -> Ended:
    """Run a function in a thread until it is done, or until the deadline, SIGTERM or SIGINT, whatever a library is
    doing. Use it with libraries that signals can't interrupt, because they run compiled code or catch all exceptions.
    If this returns early, the thread is still running, so end with `exit_now`, and write files atomically (`write`,
    `copy`).

    Args:
        deadline: The deadline, as Unix time.
        work: The function to run.
        each_second: Called about once a second from the main thread, for example to forward a notice.
    """
    over = threading.Event()
    stopped: list[str] = []
    failed: list[str] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        stopped.append(signal.Signals(number).name)
        over.set()

    def target() -> None:
        try:
            work()
        except BaseException:
            failed.append(traceback.format_exc())
        finally:
            over.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    threading.Thread(target=target, daemon=True).start()
    while not over.wait(max(0.0, min(1.0, deadline - time.time()))):
        if time.time() >= deadline:
            stopped.append("the deadline")
            break
        if each_second is not None:
            each_second()
    return Ended(stopped[0] if stopped else None, failed[0] if failed else None)


def exit_now(code: int) -> NoReturn:
    """End the process at once, without waiting for its threads or child processes."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
