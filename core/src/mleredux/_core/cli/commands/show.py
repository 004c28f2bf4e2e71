"""`mleredux show`."""

from __future__ import annotations

import click

from mleredux._core.cli.context import backend
from mleredux._core.cli.options import data_dir_option, json_option
from mleredux._core.cli.output import print_facts, print_json
from mleredux.models.formats import plain

_FACTS = ("id", "title", "kind", "version", "category", "metric", "direction", "sets", "variants", "data")


@click.command()
@click.argument("task")
@click.option("--obfuscated", is_flag=True, help="The description without the competition's name and story.")
@data_dir_option
@json_option
@click.pass_context
def command(ctx: click.Context, task: str, obfuscated: bool, data_dir: str | None, as_json: bool) -> None:
    """Show a task: its description, metric, medals, and where its data is stored."""
    facts = backend(ctx, data_dir=data_dir).task(task, obfuscated=obfuscated)
    if as_json:
        print_json(facts)
        return
    medals = "  ".join(f"{name} {plain(value)}" for name, value in (facts["thresholds"] or {}).items())
    print_facts({**{name: facts.get(name) for name in _FACTS}, "medals": medals})
    click.echo()
    click.echo(facts["description"])
