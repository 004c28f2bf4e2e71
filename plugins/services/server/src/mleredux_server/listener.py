"""Start to listen."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI
from mleredux.errors import MlereduxError
from sqlalchemy import select

from mleredux_server.accounts import make_token, make_user
from mleredux_server.database.tables import User
from mleredux_server.identity import TOKEN_PREFIX
from mleredux_server.service import Service
from mleredux_server.streams.hub import end_streams_with

FIRST_USER = "admin"
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
        _, said = make_token(session, user, "first", ["admin"], value=chosen)
    return None if chosen else said


def serve(app: FastAPI, server_socket: socket.socket, listening: Callable[[str], None]) -> None:
    """Serve until the process is told to stop.

    Args:
        app: The application.
        server_socket: From `address.bound`.
        listening: Called with the URL once it responds.
    """
    host, port = server_socket.getsockname()[:2]
    url = f"http://[{host}]:{port}" if server_socket.family == socket.AF_INET6 else f"http://{host}:{port}"
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=5))
    original = server.startup

    async def startup(sockets: list[socket.socket] | None = None) -> None:
        await original(sockets)
        listening(url)

    server.startup = startup  # type: ignore[method-assign]
    end_streams_with(server, app)
    server.run(sockets=[server_socket])
