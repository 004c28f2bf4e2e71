"""The address and the runs directory of a server, taken before its libraries are imported, which takes seconds."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from mleredux.errors import MlereduxError
from mleredux.plugin.files import FileLock

from mleredux_server.settings import Settings

_BACKLOG = 2048


def bound(settings: Settings) -> socket.socket:
    """Return a socket that listens, before anything that a failed start would leave is created.

    Who connects while the rest is imported waits, instead of being refused.

    Raises:
        MlereduxError: The address can't be used.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol is named, or asyncio does not disable Nagle's algorithm: each response would take 40 ms longer.
    server_socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server_socket.bind((settings.host, settings.port))
        server_socket.listen(_BACKLOG)
    except OSError as error:
        raise MlereduxError(
            f"Can't listen on {settings.host}:{settings.port}: {error.strerror}.", hint="Choose another --port."
        ) from error
    return server_socket


@contextmanager
def alone(settings: Settings) -> Iterator[None]:
    """Lock a runs directory against other servers.

    Raises:
        MlereduxError: There is another one.
    """
    settings.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = FileLock(settings.state_dir / "server.lock")
    if not lock.acquire():
        raise MlereduxError(
            f"Another server already uses {settings.runs_dir}.", hint="Stop it first, or use another --runs-dir."
        )
    try:
        yield
    finally:
        lock.release()
