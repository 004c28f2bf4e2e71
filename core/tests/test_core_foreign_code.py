"""Exceptions that the code of a plugin raises become errors of mleredux; those of signals pass."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

import pytest
from mleredux.errors import MlereduxError, foreign_code


class Handlers:
    """Handlers of signals as the worker of a server, a node and the client have them."""

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        raise SystemExit(0)

    def interrupt(self, _number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def stop_once(self, number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)


def wait() -> None:
    signal.raise_signal(signal.SIGUSR1)
    time.sleep(20)


def compute() -> None:
    signal.raise_signal(signal.SIGUSR1)
    for number in range(10**9):
        _ = number**2


@pytest.mark.parametrize("work", [wait, compute])
@pytest.mark.parametrize(
    ("handler", "kind"),
    [
        (Handlers().stop, SystemExit),
        (Handlers().stop_once, SystemExit),
        (Handlers().interrupt, KeyboardInterrupt),
        (lambda number, _frame: sys.exit(128 + number), SystemExit),
        (signal.default_int_handler, KeyboardInterrupt),
    ],
)
def test_what_a_handler_of_signals_raises_passes(
    handler: Callable[[int, FrameType | None], object], kind: type[BaseException], work: Callable[[], None]
) -> None:
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(kind), foreign_code(MlereduxError, "The plugin failed", "Fix it."):
            work()
    finally:
        signal.signal(signal.SIGUSR1, before)


def raise_exit() -> None:
    raise SystemExit(3)


def raise_interrupt() -> None:
    raise KeyboardInterrupt


def call_exit() -> None:
    sys.exit("no licence")


@pytest.mark.parametrize("work", [raise_exit, raise_interrupt, call_exit])
def test_what_a_plugin_raises_is_an_error(work: Callable[[], None]) -> None:
    with (
        pytest.raises(MlereduxError, match=r"^The plugin failed \("),
        foreign_code(MlereduxError, "The plugin failed", "."),
    ):
        work()
