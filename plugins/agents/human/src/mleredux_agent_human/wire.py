"""Requests to a session, from inside its sandbox or from this machine: a line of JSON on a Unix socket. Standard
library alone."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

FOLDER = ".session"
"""The folder of a session in the output folder, as long as the session lives."""
_SOCKET = "socket"
_BLOCK = 1 << 16
MAX_LINE = 1 << 16


class NoSession(Exception):
    """There is no session, or it has ended."""


@contextlib.contextmanager
def address(folder: Path) -> Iterator[str]:
    """The address of the socket in a folder; the length of a socket's own path is limited to a hundred bytes."""
    if not Path("/proc/self/fd").is_dir():
        yield str(folder / _SOCKET)
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield f"/proc/self/fd/{opened}/{_SOCKET}"
    finally:
        os.close(opened)


def dial(output: Path, request: dict[str, Any]) -> socket.socket:
    """Connect to the session of an output folder, and send a request.

    Raises:
        NoSession: There is none.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with address(output / FOLDER) as path:
            if not stat.S_ISSOCK(os.lstat(path).st_mode):  # the folder is the agent's
                raise NoSession
            connection.connect(path)
        connection.sendall(json.dumps(request).encode() + b"\n")
    except OSError as error:
        connection.close()
        raise NoSession from error
    return connection


def ask(output: Path, do: str, file: Path | None = None) -> dict[str, Any]:
    """Send a request with the content of a file; the answer.

    Raises:
        NoSession: There is no session, or it ended before it answered.
        OSError: The file can't be read.
    """
    with contextlib.ExitStack() as stack:
        source: BinaryIO | None = stack.enter_context(file.open("rb")) if file else None
        size = os.fstat(source.fileno()).st_size if source else None
        request = {"do": do, "size": size, "name": file.name if file else None}
        connection = stack.enter_context(dial(output, request))
        try:
            while source and (block := source.read(_BLOCK)):
                connection.sendall(block)
            answer = json.loads(connection.makefile("rb").readline(MAX_LINE))
        except (OSError, ValueError) as error:
            raise NoSession from error
    return answer if isinstance(answer, dict) else {}
