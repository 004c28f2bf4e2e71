"""Requests to a session, from inside its sandbox or from this machine: a line of JSON on a Unix socket. Standard
library only."""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import socket
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

FOLDER = ".session"
"""The folder of a session in the output folder; it exists as long as the session."""
_SOCKET = "socket"
_BLOCK = 1 << 16
MAX_LINE = 1 << 16
"""Maximum length of the line of a request, in bytes."""
MAX_ANSWER = 1 << 20
"""Maximum length of the line of a response, in bytes."""
MAX_CONTENT = 1 << 27
"""Maximum size of the content that may follow the line, in bytes."""


class NoSession(Exception):
    """There is no session, or it has ended."""


def readable(files: Iterable[int], seconds: float | None = None) -> set[int]:
    """Wait until some of these open files can be read, and return those; `select.select` refuses numbers above 1,023.

    Args:
        files: File descriptors.
        seconds: The maximum; None: no limit.
    """
    waiting = select.poll()
    for file in files:
        waiting.register(file, select.POLLIN)
    return {file for file, _ in waiting.poll(None if seconds is None else 1000 * seconds)}


@contextlib.contextmanager
def address(folder: Path) -> Iterator[str]:
    """Yield the address of the socket in a folder; the path of a socket is limited to about a hundred bytes."""
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
        NoSession: There is no session.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with address(output / FOLDER) as path:
            if not stat.S_ISSOCK(os.lstat(path).st_mode):  # the folder belongs to the agent
                raise NoSession
            connection.connect(path)
        connection.sendall(json.dumps(request).encode() + b"\n")
    except OSError as error:
        connection.close()
        raise NoSession from error
    return connection


def request(output: Path, do: str, source: Path | bytes | None = None, **facts: Any) -> dict[str, Any]:
    """Send a request with the content of a file, or with bytes; return the response, with the bytes after its line as
    `content`.

    Args:
        output: The output folder of the session.
        do: The kind of request.
        source: The content to send: a file, or bytes.

    Raises:
        NoSession: There is no session, or it ended before it responded.
        OSError: The file can't be read.
    """
    with contextlib.ExitStack() as stack:
        content: BinaryIO | None = io.BytesIO(source) if isinstance(source, bytes) else None
        if isinstance(source, Path):
            content = stack.enter_context(source.open("rb"))
        size = content.seek(0, os.SEEK_END) if content else None
        if content:
            content.seek(0)
        request = {"do": do, "size": size, "name": source.name if isinstance(source, Path) else None, **facts}
        connection = stack.enter_context(dial(output, request))
        try:
            while content and (block := content.read(_BLOCK)):
                connection.sendall(block)
            answered = connection.makefile("rb")
            answer = json.loads(answered.readline(MAX_ANSWER))
            if isinstance(answer, dict):
                answer.pop("content", None)
            if isinstance(answer, dict) and answer.get("size"):
                size = max(0, min(int(answer["size"]), MAX_CONTENT))
                answer["content"] = answered.read(size)
                if len(answer["content"]) < size:
                    raise NoSession
        except (OSError, OverflowError, TypeError, ValueError) as error:
            raise NoSession from error
    return answer if isinstance(answer, dict) else {}
