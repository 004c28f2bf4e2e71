"""The HTTP server of an environment: sessions over `/ws`."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import click
import uvicorn
from mleredux.errors import MlereduxError, file_errors
from mleredux_agents import fair_share
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.types import State
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

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
        if origin is None or origin.partition(b"://")[2] == headers.get(b"host"):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await PlainTextResponse("Pages of other sites can't use this server.", 403)(scope, receive, send)


def serve(
    tasks: Sequence[str],
    *,
    reward: str,
    invalid: float | None,
    places: Mapping[str, Any],
    host: str,
    port: int,
    sessions: int,
) -> None:
    """Serve tasks until the process is interrupted; for arguments see `TaskEnvironment`.

    Raises:
        MlereduxError: The port can't be used.
    """
    shared = {"limits": fair_share(sessions), **places}
    make = partial(TaskEnvironment, tasks, reward=reward, invalid=invalid, places=shared)
    app = create_fastapi_app(make, TaskAction, TaskObservation, max_concurrent_envs=sessions, state_cls=State)
    app.add_middleware(SameOrigin)
    if host in _LOOPBACK:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=_LOOPBACK)
    with file_errors(MlereduxError, f"Port {port} of {host} can't be used", "Choose another one with --port."):
        listening = socket.create_server((host, port))
    click.echo(f"OpenEnv clients can use {', '.join(tasks)} at http://{host}:{listening.getsockname()[1]}")
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
