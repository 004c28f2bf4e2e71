"""The HTTP server of an environment: sessions over `/ws`."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import click
import uvicorn
from mleredux.errors import MlereduxError, file_errors
from mleredux_agents import close_sessions, fair_share
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.types import State
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from mleredux_bridge_openenv.environment import TaskAction, TaskEnvironment, TaskObservation

_LOOPBACK = ["127.0.0.1", "localhost"]


class SameOrigin:
    """Refuses cross-site requests of browsers, including WebSockets, because an action is a command.

    Also checks the host name, which other sites can resolve to this machine (DNS rebinding).

    Args:
        app: The application to protect.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        headers = dict(scope.get("headers", ()))
        origin = headers.get(b"origin")
        left = (RuntimeError, WebSocketDisconnect) if scope["type"] == "websocket" else ()
        if origin is None or origin.partition(b"://")[2] == headers.get(b"host"):
            with contextlib.suppress(*left):  # OpenEnv also answers clients that have left
                await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await PlainTextResponse("Pages of other sites can't use this server.", 403)(scope, receive, send)


class Server(uvicorn.Server):
    """A server that cancels all episodes when it ends, because it waits for the commands that they run."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting requests, and close all connections."""
        cancelling = asyncio.create_task(asyncio.to_thread(close_sessions))
        await super().shutdown(sockets)
        await cancelling


def serve(tasks: Sequence[str], *, host: str, port: int, sessions: int, places: Mapping[str, Any], **rule: Any) -> None:
    """Serve tasks until the process is interrupted.

    Args:
        tasks, places: As in `TaskEnvironment`.
        sessions: Maximum number of concurrent sessions.
        rule: The arguments `reward` and `invalid` of `TaskEnvironment`.

    Raises:
        MlereduxError: The port can't be used.
    """
    shared = {"limits": fair_share(sessions), **places}
    make = partial(TaskEnvironment, tasks, places=shared, **rule)
    app = create_fastapi_app(make, TaskAction, TaskObservation, max_concurrent_envs=sessions, state_cls=State)
    app.add_middleware(SameOrigin)
    if host in _LOOPBACK:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=_LOOPBACK)
    with file_errors(MlereduxError, f"Port {port} of {host} can't be used", "Choose another one with --port."):
        listening = socket.create_server((host, port))
    click.echo(f"OpenEnv clients can use {', '.join(tasks)} at http://{host}:{listening.getsockname()[1]}")
    server = Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=10))
    signal.signal(signal.SIGHUP, server.handle_exit)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # how it ends then, once everything is closed
    server.run(sockets=[listening])
