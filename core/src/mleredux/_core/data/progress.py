"""Telling how far long work has come, without a callback handed through every function in between.

Whoever shows progress listens in its own thread; whoever works tells. Where nobody listens, telling costs nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """What is going on.

    Attributes:
        stage: In a few words: "downloading".
        done: Bytes done so far, where bytes are counted.
        total: Bytes in all, where known.
        lasting: Whether people should still see it when the work is over (something noteworthy).
    """

    stage: str
    done: int | None = None
    total: int | None = None
    lasting: bool = False


_listener: ContextVar[Callable[[Step], None] | None] = ContextVar("mleredux_progress", default=None)


def tell(stage: str, done: int | None = None, total: int | None = None, *, lasting: bool = False) -> None:
    """Tell the listener of this thread, if there is one. It may raise `Cancelled`, to end the work."""
    listener = _listener.get()
    if listener is not None:
        listener(Step(stage, done, total, lasting))


@contextlib.contextmanager
def listening(listener: Callable[[Step], None]) -> Iterator[None]:
    """Hear what this thread tells, while the context lasts."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
