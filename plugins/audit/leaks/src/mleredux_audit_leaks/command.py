"""`mleredux audit`."""

from __future__ import annotations

from typing import Any

import click
from mleredux.plugin.command import CommandGroup, catalogue, data_dir_option, echo, json_option, print_json


class Audit(CommandGroup):
    """The group in which `audit TASK` means `audit leaks TASK`; plugins add other audits."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments as click does, with `leaks` as the default command."""
        if args and args[0] not in ("-h", "--help") and args[0] not in self.shown(ctx):
            args = ["leaks", *args]
        return super().parse_args(ctx, args)


@click.group("audit", cls=Audit)
def command(**_options: Any) -> None:
    """Audit a prepared task. `mleredux audit TASK` finds leaks; other audits are subcommands."""


@command.command("leaks")
@click.argument("task")
@data_dir_option
@json_option
@click.pass_context
def leaks(ctx: click.Context, task: str, data_dir: str | None, as_json: bool) -> None:
    """Find leaks in TASK: ways to score without learning. The exit code is 3 if a finding has high severity."""
    from mleredux.errors import DataError
    from mleredux.plugin.command import DataStore

    from mleredux_audit_leaks.audit import audit

    audited = catalogue(ctx).task(task)
    prepared = DataStore(data_dir).find(audited)
    if prepared is None:
        raise DataError(f"Task {task} is not prepared.", hint=f"Prepare it first: `mleredux prepare {task}`.")
    report = audit(audited, prepared.public, prepared.private)
    if not prepared.neutral:
        note = "Another program or version prepared the files, so inodes may reveal classes; prepare with --force."
        report = report.model_copy(update={"notes": (*report.notes, note)})
    if as_json:
        print_json({**report.model_dump(mode="json"), "clean": report.clean})
    else:
        echo(report.text())
    ctx.exit(0 if report.clean else 3)
