"""End work that does not ask by itself whether it should: a task's own code, in this process."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mleredux.errors import Cancelled

_LOOK_SECONDS = 0.2


class _Interrupted(Cancelled):
    def __init__(self) -> None:
        super().__init__("A user cancelled the run.")


@contextmanager
def interruptible(cancelled: Callable[[], bool]) -> Iterator[None]:
    """Interrupt this thread, between any two of its instructions, once somebody asked to stop.

    What it then leaves behind must be what a killed program may leave, too. Compiled code returns first.

    Raises:
        Cancelled: Somebody asked to stop.
    """
    ended, guard, thread = threading.Event(), threading.Lock(), threading.get_ident()

    def watch() -> None:
        while not ended.wait(_LOOK_SECONDS):
            with guard:
                if cancelled() and not ended.is_set():
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Interrupted))
                    return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    except Exception as error:
        if cancelled():  # however the work reports that it was interrupted
            raise _Interrupted from error
        raise
    finally:
        with guard:
            ended.set()
