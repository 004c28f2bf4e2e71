"""Signal handling of commands that execute runs."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def cancelling(cancel: Callable[[], object]) -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and SIGHUP cancel the work in the block; a second signal ends the program at once.

    Ignored signals (SIGHUP under `nohup`) stay ignored. Outside the main thread it does nothing.

    Args:
        cancel: Called in the signal handler, so it must do as little as possible.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _NUMBERS}
    heard = [number for number, handler in before.items() if handler is not signal.SIG_IGN]

    def first(number: int, _frame: FrameType | None) -> None:
        for each in heard:
            signal.signal(each, signal.SIG_DFL)
        if number == signal.SIGHUP:
            _leave_terminal()
        cancel()

    for number in heard:
        signal.signal(number, first)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, before[number] or signal.SIG_DFL)


def _leave_terminal() -> None:
    """Stop reading from and writing to the terminal: each attempt would fail."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        if os.isatty(descriptor):
            os.dup2(nothing, descriptor)
