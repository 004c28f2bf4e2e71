"""Report the progress of long work without passing a callback through every function in between.

The code that shows progress listens, and the code that does the work reports, both in the same thread. Without a
listener, a report costs nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """The current step of the work.

    Attributes:
        stage: A short description, such as "downloading".
        done: Bytes done so far, if bytes are counted.
        total: Total number of bytes, if known.
        lasting: Whether the step should remain visible when the work is done.
    """

    stage: str
    done: int | None = None
    total: int | None = None
    lasting: bool = False


_listener: ContextVar[Callable[[Step], None] | None] = ContextVar("mleredux_progress", default=None)


def report(stage: str, done: int | None = None, total: int | None = None, *, lasting: bool = False) -> None:
    """Report a step to this thread's listener, if there is one, which may raise `Cancelled` to end the work.

    Args:
        stage: A short description of the step, such as "downloading".
        done: Bytes done so far, if bytes are counted.
        total: Total number of bytes, if known.
        lasting: Whether the step should remain visible when the work is done.
    """
    listener = _listener.get()
    if listener is not None:
        listener(Step(stage, done, total, lasting))


@contextlib.contextmanager
def listening(listener: Callable[[Step], None]) -> Iterator[None]:
    """Call a listener with the steps that this thread reports inside the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
