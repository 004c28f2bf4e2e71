"""The end of the time, as an exception in the main thread."""

from __future__ import annotations

import os
import signal
import time
from types import FrameType


class Stopped(BaseException):
    """The time is over, or somebody asked to stop. No `except Exception` of a library holds it up."""


class Clock:
    """Raises `Stopped` at the deadline, and at SIGTERM.

    Args:
        deadline: Unix time.
    """

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        signal.signal(signal.SIGTERM, self._asked)
        signal.signal(signal.SIGALRM, self._over)
        # Solutions run in forked processes, which must be stoppable as any other.
        os.register_at_fork(after_in_child=_forget)
        signal.setitimer(signal.ITIMER_REAL, max(0.001, self.left))

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.time()

    def close(self) -> None:
        """From now on nothing is raised any more."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _asked(self, _number: int, _frame: FrameType | None) -> None:
        self.close()
        raise Stopped("asked to end")

    def _over(self, _number: int, _frame: FrameType | None) -> None:
        self.close()
        raise Stopped("the time is nearly over")


def _forget() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
