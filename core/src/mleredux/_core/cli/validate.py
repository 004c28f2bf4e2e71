"""`mleredux validate`."""

from __future__ import annotations

from pathlib import Path

import click

from mleredux._core.cli.output import data_dir_option, json_option, print_json
from mleredux._core.cli.root import catalogue


@click.command()
@click.argument("submission", type=click.Path(path_type=Path))
@click.argument("task")
@data_dir_option
@json_option
@click.pass_context
def command(ctx: click.Context, submission: Path, task: str, data_dir: str | None, as_json: bool) -> None:
    """Say whether SUBMISSION is well-formed for TASK. The answers are not opened. Exit code 1 where it is not."""
    from mleredux._core.api import validate

    catalogue(ctx)
    verdict = validate(submission, task, data_dir=data_dir)
    if as_json:
        print_json(verdict.model_dump())
    else:
        click.echo(verdict.message)
    ctx.exit(0 if verdict.valid else 1)
