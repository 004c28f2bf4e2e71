"""The HTTP server of an environment: sessions over `/ws`."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import click
import uvicorn
from mleredux import MlereduxError
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.types import State

from mleredux_bridge_openenv.environment import TaskAction, TaskEnvironment, TaskObservation


def serve(
    tasks: Sequence[str],
    *,
    reward: str,
    invalid: float,
    places: Mapping[str, Any],
    host: str,
    port: int,
    sessions: int,
) -> None:
    """Serve tasks until the process is interrupted; arguments as of `TaskEnvironment`.

    Raises:
        MlereduxError: The port can't be used.
    """
    make = partial(TaskEnvironment, tasks, reward=reward, invalid=invalid, places=places)
    app = create_fastapi_app(make, TaskAction, TaskObservation, max_concurrent_envs=sessions, state_cls=State)
    try:
        listening = socket.create_server((host, port))
    except OSError as error:
        told = f"Port {port} of {host} can't be used: {error.strerror}."
        raise MlereduxError(told, hint="Choose another one with --port.") from None
    click.echo(f"OpenEnv's clients find {', '.join(tasks)} at http://{host}:{listening.getsockname()[1]}")
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
