"""Compare each bridge with a toy task of the other framework: `uv run python benchmarks/bridges.py [PART…]`.

A PART is the prefix of a row's name. OpenEnv and verifiers are measured if `.ci/validators` has created their
environments.
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

TOY_TASKSET = """
import verifiers.v1 as vf
from toy.taskset import ToyData, ToyTask, ToyTaskset

class EchoTask(ToyTask):
    @vf.reward(weight=1.0)
    async def reward(self, trace: vf.Trace) -> float:
        return 1.0

class EchoTaskset(ToyTaskset):
    def load(self) -> list[EchoTask]:
        return [EchoTask(ToyData(prompt="Echo, then say that you are done."), self.config.task)] * self.config.num_tasks

__all__ = ["EchoTaskset"]
"""


def median_of(count: int, call: Callable[[], object]) -> float:
    """Return median wall seconds of a call, after one uncounted call."""
    taken = []
    for number in range(count + 1):
        began = time.perf_counter()
        call()
        if number:
            taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def gymnasium_step(places: dict[str, Any]) -> tuple[float, float]:
    """Measure a step with the command `true`, and a step of CartPole."""
    import gymnasium

    ours: Any = gymnasium.make("mleredux_bridge_gymnasium.environment:mleredux/Task-v0", task="wine", **places)
    ours.reset(seed=0)
    toy: Any = gymnasium.make("CartPole-v1")
    toy.reset(seed=0)
    ours_time = median_of(STEPS, lambda: ours.step({"kind": 0, "text": "true"}))
    ours.close()
    return ours_time, median_of(STEPS, lambda: (toy.reset(seed=0), toy.step(0)))


def mcp_call(places: dict[str, Any]) -> tuple[float, float]:
    """Measure a call of `run_command` with `true`, and a call of a tool that returns its argument."""
    from mcp import Client
    from mcp.server import MCPServer
    from mleredux_agents import open_session
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
    """Measure a graded evaluation of `wine`, and an evaluation of a sample by string matching."""
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
    """Measure the export of `wine` as a task directory."""
    from mleredux_bridge_harbor.directory import write_task

    folder, names = Path(places["runs_dir"]).parent, iter(range(EPISODES + 1))
    return median_of(EPISODES, lambda: write_task("wine", folder / f"t{next(names)}", data_dir=places["data_dir"]))


def openenv_step(places: dict[str, Any]) -> tuple[float, float] | None:
    """Measure a step with the command `true`, and a step of an echo environment, over a WebSocket."""
    if (programs := programs_of("openenv")) is None:
        return None
    openenv_command = [programs / "python", "-c", OPENENV, json.dumps({**places, "limits": {}}), str(STEPS)]
    ours, toy = json.loads(
        subprocess.run(openenv_command, capture_output=True, check=True, text=True).stdout.splitlines()[-1]
    )
    return ours, toy


def verifiers_rollout(places: dict[str, Any]) -> tuple[float, float] | None:
    """Measure a rollout of two turns with the command `true`, and one of a minimal taskset with an echo tool."""
    if (programs := programs_of("verifiers")) is None:
        return None
    home = Path(places["runs_dir"]).parent
    toy = home / "toy"
    subprocess.run([programs / "vf-init", "toy", "-T", "True", "--path", home], check=True, capture_output=True)
    (toy / "echoes.py").write_text(TOY_TASKSET)
    ours = [word for name, value in places.items() for word in (f"--env.taskset.task.{name}", str(value))]
    ours += ["--env.taskset.tasks", '["wine"]', "--env.taskset.seeds", str(EPISODES + 1)]
    return (
        median_rollout(programs, "mleredux-bridge-verifiers", "run_command", {"command": "true"}, ours, toy),
        median_rollout(
            programs, "echoes", "toy_echo", {"text": "true"}, ["--env.taskset.num-tasks", str(EPISODES + 1)], toy
        ),
    )


def median_rollout(
    programs: Path, taskset: str, tool: str, arguments: dict[str, str], options: list[str], folder: Path
) -> float:
    """Return median wall seconds of sequential, scored rollouts, after one uncounted rollout."""
    from mleredux_scripted_llm import ScriptedLlm

    first = {"when": {"last": "say that you are done"}, "reply": {"tools": [{"name": tool, "arguments": arguments}]}}
    out = folder / taskset
    words = ["-m", "scripted", "--no-push", "--no-rich", "-c", "1", "-o", str(out)]
    words += ["--env.agent.harness.id", "null", "--env.agent.runtime.type", "subprocess", *options]
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    with ScriptedLlm({"rules": [first, {"reply": {"text": "Done."}}]}) as llm:
        subprocess.run(
            [programs / "vf-eval", taskset, *words, "--client.base-url", f"{llm.url}/v1"],
            check=True,
            capture_output=True,
            cwd=folder,
            env={**os.environ, "PATH": path, "PRIME_API_KEY": "none", "PYTHONPATH": str(folder)},
        )
    (file,) = out.glob("*/traces.jsonl")
    traces = [trace for line in file.read_text().splitlines() for trace in json.loads(line)["traces"]]
    if any(trace["errors"] for trace in traces) or len(traces) != EPISODES + 1:
        raise SystemExit(f"Rollouts of {taskset} failed.")
    timings = sorted((trace["timing"] for trace in traces), key=lambda timing: timing["start"])
    return statistics.median(timing["scoring"]["end"] - timing["start"] for timing in timings[1:])


def programs_of(name: str) -> Path | None:
    """Return the folder of programs in the environment that `.ci/validators` creates for a framework, if it exists."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / f"mleredux-{name}" / "bin"
    return folder if folder.is_dir() else None


def shown(seconds: float) -> str:
    """Format seconds as milliseconds, or as microseconds below one millisecond."""
    return f"{seconds * 1e3:,.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:,.0f} µs"


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        places = {"sandbox": "process", "runs_dir": f"{folder}/runs", "data_dir": f"{folder}/data"}
        measures: dict[str, Callable[[dict[str, Any]], tuple[float, float | None] | None]] = {
            "Gymnasium: a step (CartPole)": gymnasium_step,
            "MCP: a tool call (echo)": mcp_call,
            "OpenEnv: a step (echo)": openenv_step,
            "Inspect: an evaluation with its grade (match)": inspect_sample,
            "verifiers: a rollout (its scaffold, with echo)": verifiers_rollout,
            "Harbor: export of a task": lambda places: (harbor_export(places), None),
        }
        wanted = tuple(sys.argv[1:]) or ("",)
        rows = [(name, measure(places)) for name, measure in measures.items() if name.startswith(wanted)]
    cells = [(name, shown(pair[0]), shown(pair[1]) if pair[1] is not None else "-") for name, pair in rows if pair]
    sys.stdout.write(f"{machine()}\n\n{table(('bridge (toy task)', 'ours', 'toy'), *cells)}\n")


if __name__ == "__main__":
    main()
