"""`mleredux validate`."""

from __future__ import annotations

from pathlib import Path

import click

from mleredux._core.cli.context import backend
from mleredux._core.cli.options import data_dir_option, json_option
from mleredux._core.cli.output import check_order, echo, print_json


@click.command()
@click.argument("submission", type=click.Path(path_type=Path))
@click.argument("task")
@data_dir_option
@json_option
@click.pass_context
def command(ctx: click.Context, submission: Path, task: str, data_dir: str | None, as_json: bool) -> None:
    """Check that SUBMISSION is well-formed for TASK, without opening the answers.

    \b
    Exit codes: 0 well-formed · 1 error · 2 usage · 3 not well-formed
    """
    check_order(ctx, submission, task)
    verdict = backend(ctx, data_dir=data_dir).validate(submission, task)
    print_json(verdict.model_dump()) if as_json else echo(verdict.message)
    ctx.exit(0 if verdict.valid else 3 if submission.exists() else 1)
