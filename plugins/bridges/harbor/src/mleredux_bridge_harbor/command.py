"""`mleredux export-task`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from mleredux.models.formats import plain
from mleredux.plugin.command import Duration, data_dir_option
from mleredux_agents import REWARDS, rule_of


@click.command("export-task")
@click.argument("task")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), required=True, help="The task directory; it must not exist."
)
@click.option("--image", default="python:3.13-slim", show_default=True, help="Image with Python and pip to build from.")
@click.option("--time-limit", type=Duration(), help="Time limit for agents, such as 2h.  [default: the task's, or 1h]")
@click.option("--reward", type=click.Choice(list(REWARDS)), default="standing", show_default=True, help="Reward rule.")
@click.option("--invalid", type=float, help="Reward for an invalid submission.  [default: 0; `score` requires one]")
@data_dir_option
def command(task: str, output: Path, reward: str, invalid: float | None, **how: Any) -> None:
    """Write TASK as a Harbor task directory (schema 1.4).

    Agents get the description and the public files, without network access. The answers and the grader are only in
    the image of the separate verifier, which computes the reward. Data without a declared license, such as Kaggle's, is
    not included: `fetch.sh` downloads it with the credentials of the user who builds the images.
    """
    from mleredux_bridge_harbor.directory import write_task

    filled = write_task(task, output, rule_of(reward, invalid), **how)
    if isinstance(filled, str):
        click.echo(f"{output} does not include the data; its fetch.sh downloads it. {filled}")
        return
    solution = "It has no solution." if filled is None else f"The reward of solution/ is {plain(filled, 6)}."
    click.echo(f"{output} has the answers in tests/ and solution/: do not give them to agents. {solution}")
