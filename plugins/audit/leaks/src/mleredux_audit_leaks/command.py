"""`mleredux audit`."""

from __future__ import annotations

import click
from mleredux.plugin.command import catalogue, data_dir_option, json_option, print_json


@click.command("audit")
@click.argument("task")
@data_dir_option
@json_option
@click.pass_context
def command(ctx: click.Context, task: str, data_dir: str | None, as_json: bool) -> None:
    """Find leaks in TASK: ways to score without learning. Exit code 1 if a finding is of high severity."""
    from mleredux.errors import DataError
    from mleredux.plugin.command import DataStore

    from mleredux_audit_leaks.audit import audit

    found = catalogue(ctx).task(task)
    prepared = DataStore(data_dir).find(found)
    if prepared is None:
        raise DataError(f"Task {task} is not prepared.", hint=f"Prepare it first: `mleredux prepare {task}`.")
    report = audit(found, prepared.public, prepared.private)
    if as_json:
        print_json({**report.model_dump(mode="json"), "clean": report.clean})
    else:
        click.echo(report.text())
    ctx.exit(0 if report.clean else 1)
