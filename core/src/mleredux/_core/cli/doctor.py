"""`mleredux doctor`."""

from __future__ import annotations

import click

from mleredux._core.cli.context import catalogue
from mleredux._core.cli.output import data_dir_option, json_option, print_json, runs_dir_option

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "error": ("✗", "red")}


@click.command()
@runs_dir_option
@data_dir_option
@json_option
@click.pass_context
def command(ctx: click.Context, runs_dir: str | None, data_dir: str | None, as_json: bool) -> None:
    """Check this machine's setup and suggest fixes.

    \b
    Exit codes: 0 runs work on this machine, warnings or not · 1 a requirement is not met
    """
    from mleredux._core.data import DataStore
    from mleredux._core.doctor import diagnose, healthy
    from mleredux._core.store import RunStore

    found = diagnose(catalogue(ctx), RunStore(runs_dir), DataStore(data_dir))
    works = healthy(found)
    if as_json:
        print_json({"healthy": works, "findings": [diagnosis.as_json() for diagnosis in found]})
        ctx.exit(0 if works else 1)
    area = None
    for diagnosis in found:
        if diagnosis.area != area:
            area = diagnosis.area
            click.echo(click.style(area, bold=True))
        mark, colour = _MARKS[diagnosis.level]
        finding = diagnosis.finding
        click.echo(f"  {click.style(mark, fg=colour)} {finding.name}: {finding.message}")
        if not finding.ok and finding.remedy:
            click.echo(f"    → {finding.remedy}")
    warnings = sum(diagnosis.level == "warning" for diagnosis in found)
    errors = sum(diagnosis.level == "error" for diagnosis in found)
    click.echo(f"\nThis machine {'can' if works else 'cannot'} run agents: {errors} errors, {warnings} warnings.")
    ctx.exit(0 if works else 1)
