"""Start to listen."""

from __future__ import annotations

import asyncio
import resource
import signal
import socket
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from mleredux.errors import MlereduxError
from sqlalchemy import select
from uvicorn.protocols.http.h11_impl import H11Protocol

from mleredux_server.accounts.accounts import make_token, make_user
from mleredux_server.accounts.identity import TOKEN_PREFIX
from mleredux_server.database.tables import User
from mleredux_server.service import Service
from mleredux_server.streams.hub import end_streams_with

FIRST_USER = "admin"
HEADER_SECONDS = 20.0
"""Time limit for the headers of a request, counted from its first byte or the connection, and for an unread body."""
LAST_SECONDS = 1.0
"""Time for the first request of a connection that was accepted right before the server ends."""
_MOST_CONNECTIONS = 0.75
"""Maximum number of connections, as a share of the files that the process may open."""
_SHORTEST = 24


def first_token(service: Service, chosen: str | None) -> str | None:
    """Create the first admin if there are no users.

    Args:
        service: The service.
        chosen: A chosen token; None generates a random one.

    Returns:
        The token to display; None if there are users already, or the token was chosen.

    Raises:
        MlereduxError: The chosen token is too weak.
    """
    if chosen is not None and (not chosen.startswith(TOKEN_PREFIX) or not _SHORTEST <= len(chosen) <= 128):
        raise MlereduxError(
            f"MLEREDUX_SERVE_TOKEN must begin with {TOKEN_PREFIX} and have {_SHORTEST} to 128 characters.",
            hint=f'Generate one: echo "{TOKEN_PREFIX}$(openssl rand -hex 32)".',
        )
    with service.database.writing() as session:
        if session.scalar(select(User).limit(1)) is not None:
            return None
        user = make_user(session, FIRST_USER, admin=True)
        _, secret = make_token(session, user, "first", ["admin"], value=chosen)
    return None if chosen else secret


class Impatient(H11Protocol):
    """HTTP protocol with time limits for headers, and for the rest of a request that was already answered.

    It refuses connections if there are too many.
    """

    _late: asyncio.TimerHandle | None = None
    _ending = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, unless there are too many, and start the time limit for its headers."""
        super().connection_made(transport)
        if len(self.connections) > _MOST_CONNECTIONS * resource.getrlimit(resource.RLIMIT_NOFILE)[0]:
            transport.abort()
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        """Receive data as usual. Complete headers end their time limit; unread data of a body starts one."""
        super().data_received(data)
        if self._ending and self.cycle is not None:
            super().shutdown()
        self._await_headers()

    def shutdown(self) -> None:
        """End the connection after its current request; if it had none, wait for one that may be on its way."""
        if self.cycle is None and not self._ending:
            self._ending = True
            self.loop.call_later(LAST_SECONDS, self.shutdown)
        elif not self.transport.is_closing():
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after a connection has ended."""
        super().connection_lost(exc)
        if self._late is not None:
            self._late.cancel()

    def _await_headers(self) -> None:
        answered = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        waiting = answered or self.conn.their_state is h11.IDLE
        if self._late is not None and not waiting:
            self._late.cancel()
            self._late = None
        elif self._late is None and waiting:
            self._late = self.loop.call_later(HEADER_SECONDS, self.transport.close)


def configured(app: FastAPI, **options: Any) -> uvicorn.Config:
    """Return the configuration of the HTTP server."""
    return uvicorn.Config(
        app, http=Impatient, log_config=None, access_log=False, timeout_graceful_shutdown=5, **options
    )


def serve(app: FastAPI, server_socket: socket.socket, listening: Callable[[str], None]) -> None:
    """Serve until the process is asked to stop.

    Args:
        app: The application.
        server_socket: The socket from `address.bound`.
        listening: Called with the URL once it responds.
    """
    host, port = server_socket.getsockname()[:2]
    url = f"http://[{host}]:{port}" if server_socket.family == socket.AF_INET6 else f"http://{host}:{port}"
    server = uvicorn.Server(configured(app))
    original = server.startup

    async def startup(sockets: list[socket.socket] | None = None) -> None:
        await original(sockets)
        listening(url)

    server.startup = startup  # type: ignore[method-assign]
    end_streams_with(server, app)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # how it ends then, once everything is closed
    server.run(sockets=[server_socket])
