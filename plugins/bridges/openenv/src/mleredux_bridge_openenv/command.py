"""`mleredux openenv`."""

from __future__ import annotations

from typing import Any

import click
from mleredux import MlereduxError
from mleredux.plugin.command import Duration, current, data_dir_option, runs_dir_option
from mleredux_agents import REWARDS, rule_of


@click.command("openenv")
@click.argument("tasks", metavar="TASK...", nargs=-1, required=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Port to listen on.")
@click.option(
    "--max-sessions",
    "sessions",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Maximum number of concurrent sessions, which share the CPUs and the memory of this machine equally.",
)
@click.option("--reward", type=click.Choice(list(REWARDS)), default="standing", show_default=True, help="Reward rule.")
@click.option("--invalid", type=float, help="Reward for an invalid submission.  [default: 0; `score` requires one]")
@click.option("--sandbox", metavar="ID", help="Sandbox for episodes.  [default: the best one here]")
@click.option("--time-limit", type=Duration(), help="Time limit of an episode, such as 90s, 30m or 2h.  [default: 1h]")
@runs_dir_option
@data_dir_option
def command(
    tasks: tuple[str, ...], host: str, port: int, sessions: int, reward: str, invalid: float | None, **places: Any
) -> None:
    """Serve TASKs as an OpenEnv environment until interrupted.

    An episode is a run; `reset(task=...)` chooses its task, by default the first. There is no authentication: anyone
    who can reach the port can run commands in the sandbox.
    """
    for task in tasks:
        current().task(task)
    rule_of(reward, invalid)
    try:
        from mleredux_bridge_openenv.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("openenv", "uvicorn"):
            raise
        problem = "This needs OpenEnv, which is not installed here."
        raise MlereduxError(problem, hint='Install it: `pip install "openenv>=0.10,<0.11"`.') from None
    serve(tasks, reward=reward, invalid=invalid, places=places, host=host, port=port, sessions=sessions)
