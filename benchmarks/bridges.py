"""Cost of each bridge beside the neighbour's own toy task: `uv run python benchmarks/bridges.py`.

OpenEnv's is measured where `.ci/validators` has made its environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _measuring import machine, table

STEPS, EPISODES = 40, 5
OPENENV = r"""
import json, statistics, sys, time
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import State
from mleredux_bridge_openenv.environment import TaskAction, TaskEnvironment, TaskObservation
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.generic_client import GenericEnvClient
import socket, threading, uvicorn

class Toy(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True
    def reset(self, seed=None, episode_id=None, **kwargs):
        return TaskObservation(text="")
    def step(self, action, timeout_s=None, **kwargs):
        return TaskObservation(text=action.text)
    @property
    def state(self):
        return State()

def measured(make, steps):
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_fastapi_app(make, TaskAction, TaskObservation), log_level="error"))
    threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True).start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with GenericEnvClient(base_url=url, message_timeout_s=300).sync() as client:
        client.reset()
        taken = []
        for _ in range(steps):
            began = time.perf_counter()
            client.step({"kind": "shell", "text": "true"})
            taken.append(time.perf_counter() - began)
    return statistics.median(taken)

places = json.loads(sys.argv[1])
steps = int(sys.argv[2])
print(json.dumps([measured(lambda: TaskEnvironment(["wine"], places=places), steps), measured(Toy, steps)]))
"""


def median_of(count: int, call: Callable[[], object]) -> float:
    """Median wall seconds of a call, after one that is not counted."""
    taken = []
    for number in range(count + 1):
        began = time.perf_counter()
        call()
        if number:
            taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def gymnasium_step(places: dict[str, Any]) -> tuple[float, float]:
    """A step with the command `true`, beside one of CartPole."""
    import gymnasium

    ours: Any = gymnasium.make("mleredux_bridge_gymnasium.environment:mleredux/Task-v0", task="wine", **places)
    ours.reset(seed=0)
    toy: Any = gymnasium.make("CartPole-v1")
    toy.reset(seed=0)
    found = median_of(STEPS, lambda: ours.step({"kind": 0, "text": "true"}))
    ours.close()
    return found, median_of(STEPS, lambda: (toy.reset(seed=0), toy.step(0)))


def mcp_call(places: dict[str, Any]) -> tuple[float, float]:
    """A call of `run_command` with `true`, beside one of a tool that returns its argument."""
    from mcp import Client
    from mcp.server import MCPServer
    from mleredux.plugin.session import open_session
    from mleredux_bridge_mcp.server import make_server

    toy: Any = MCPServer("toy")

    @toy.tool()
    def echo(command: str) -> str:
        """Return the argument."""
        return command

    async def timed(server: Any, name: str) -> float:
        async with Client(server) as client:
            taken = []
            for _ in range(STEPS + 1):
                began = time.perf_counter()
                await client.call_tool(name, {"command": "true"})
                taken.append(time.perf_counter() - began)
        return statistics.median(taken[1:])

    with open_session("wine", "mcp", **places) as session:
        ours = asyncio.run(timed(make_server(session), "run_command"))
    return ours, asyncio.run(timed(toy, "echo"))


def inspect_sample(places: dict[str, Any]) -> tuple[float, float]:
    """An evaluation of `wine` with its grade, beside one of a sample that a string is matched with."""
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import match
    from mleredux_bridge_inspect.registry import make

    given = {"model": "mockllm/model", "display": "none", "log_dir": str(places["runs_dir"]) + "-logs"}
    ours = make("wine", agent="dummy", **{name: str(value) for name, value in places.items()})
    toy = Task(dataset=[Sample(input="Say x.", target="x")], scorer=match())
    return median_of(EPISODES, lambda: evaluate(ours, **given)), median_of(EPISODES, lambda: evaluate(toy, **given))


def harbor_export(places: dict[str, Any]) -> float:
    """A task directory of `wine`."""
    from mleredux_bridge_harbor.directory import write_task

    folder, names = Path(places["runs_dir"]).parent, iter(range(EPISODES + 1))
    return median_of(EPISODES, lambda: write_task("wine", folder / f"t{next(names)}", data_dir=places["data_dir"]))


def openenv_step(places: dict[str, Any]) -> tuple[float, float] | None:
    """A step with the command `true`, beside one of an environment that returns its action; over a WebSocket."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    python = cache / "mleredux-openenv" / "bin" / "python"
    if not python.exists():
        return None
    asked = [python, "-c", OPENENV, json.dumps({**places, "limits": {}}), str(STEPS)]
    ours, toy = json.loads(subprocess.run(asked, capture_output=True, check=True, text=True).stdout.splitlines()[-1])
    return ours, toy


def shown(seconds: float) -> str:
    """Milliseconds, or microseconds below one."""
    return f"{seconds * 1e3:,.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:,.0f} µs"


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        places = {"sandbox": "process", "runs_dir": f"{folder}/runs", "data_dir": f"{folder}/data"}
        rows = [
            ("Gymnasium: a step (CartPole)", gymnasium_step(places)),
            ("MCP: a tool call (echo)", mcp_call(places)),
            ("OpenEnv: a step (echo)", openenv_step(places)),
            ("Inspect: an evaluation with its grade (match)", inspect_sample(places)),
            ("Harbor: export of a task", (harbor_export(places), None)),
        ]
    cells = [(name, shown(found[0]), shown(found[1]) if found[1] is not None else "-") for name, found in rows if found]
    sys.stdout.write(f"{machine()}\n\n{table(('bridge (toy task)', 'ours', 'toy'), *cells)}\n")


if __name__ == "__main__":
    main()
