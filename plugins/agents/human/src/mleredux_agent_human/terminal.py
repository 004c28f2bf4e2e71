"""Attachment of this terminal to the shell of a session."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mleredux_agentkit.wire import NoSession, dial, readable

_BLOCK = 1 << 16


def attach(output: Path) -> None:
    """Relay input and output until the session or this terminal ends.

    Raises:
        NoSession: The output folder has no session.
    """
    with dial(output, {"do": "attach", **_size()}) as connection, _raw(), _resized(output):
        sources = [sys.stdin.fileno(), connection.fileno()]
        while True:
            ready = readable(sources)
            if connection.fileno() in ready:
                try:
                    data = connection.recv(_BLOCK)
                except OSError:
                    return
                if not data:
                    return
                while data:
                    data = data[os.write(sys.stdout.fileno(), data) :]
            if sys.stdin.fileno() in ready:
                typed = os.read(sys.stdin.fileno(), _BLOCK)
                if not typed:
                    return
                with contextlib.suppress(OSError):
                    connection.sendall(typed)


def _size() -> dict[str, Any]:
    columns, rows = shutil.get_terminal_size()
    return {"rows": rows, "columns": columns}


@contextlib.contextmanager
def _raw() -> Iterator[None]:
    """Pass every key on to the shell."""
    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _resized(output: Path) -> Iterator[None]:
    """Notify the shell when this terminal's size changes."""

    def resize(*_: object) -> None:
        with contextlib.suppress(NoSession):
            dial(output, {"do": "size", **_size()}).close()

    before = signal.signal(signal.SIGWINCH, resize)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
