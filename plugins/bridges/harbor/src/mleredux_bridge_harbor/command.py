"""`mleredux export-task`."""

from __future__ import annotations

from pathlib import Path

import click
from mleredux.plugin.command import Duration, data_dir_option


@click.command("export-task")
@click.argument("task")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), required=True, help="The task directory; it must not exist."
)
@click.option("--image", default="python:3.13-slim", show_default=True, help="Image with Python and pip to build from.")
@click.option("--time-limit", type=Duration(), help="Time limit of agents: 90s, 30m, 2h.  [default: the task's, or 1h]")
@click.option("--invalid", type=float, default=-1.0, show_default=True, help="Reward of an invalid submission.")
@data_dir_option
def command(
    task: str, output: Path, image: str, time_limit: float | None, invalid: float, data_dir: str | None
) -> None:
    """Write TASK as a task directory of Harbor (schema 1.4).

    Agents get the description and the public files, without network. The answers and the grader are only in the image
    of the separate verifier. The reward is the score, with a minus if lower is better.
    """
    from mleredux_bridge_harbor.directory import write_task

    write_task(task, output, image=image, time_limit=time_limit, invalid=invalid, data_dir=data_dir)
    click.echo(f"{output} has the answers in tests/: don't give it to agents.")
