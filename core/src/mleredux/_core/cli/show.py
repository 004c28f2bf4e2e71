"""`mleredux show`."""

from __future__ import annotations

from typing import Any

import click

from mleredux._core.cli.output import data_dir_option, json_option, print_json
from mleredux._core.cli.root import catalogue


@click.command()
@click.argument("task")
@click.option("--obfuscated", is_flag=True, help="The description without the competition's name and story.")
@data_dir_option
@json_option
@click.pass_context
def command(ctx: click.Context, task: str, obfuscated: bool, data_dir: str | None, as_json: bool) -> None:
    """Show a task: its description, metric, medals, and where its data are."""
    from mleredux._core.data import DataStore
    from mleredux._core.records import task_record
    from mleredux.errors import DataError

    found = catalogue(ctx).task(task)
    store = DataStore(data_dir)
    try:
        prepared = store.find(found)
        state = str(prepared.public.parent) if prepared else "not prepared"
    except DataError as error:
        prepared, state = None, str(error)
    record = task_record(found, obfuscated=obfuscated)
    print_task({**record, "prepared": prepared is not None, "data": state}, as_json=as_json)


def print_task(facts: dict[str, Any], *, as_json: bool) -> None:
    """A task's facts and its description."""
    if as_json:
        print_json(facts)
        return
    for name in ("id", "title", "kind", "version", "category", "metric", "direction", "sets", "variants", "data"):
        value = facts.get(name)
        if value not in (None, [], ""):
            text = ", ".join(value) if isinstance(value, list) else value
            click.echo(f"{click.style(name.ljust(12), bold=True)} {text}")
    if facts["thresholds"]:
        medals = "  ".join(f"{name} {value:g}" for name, value in facts["thresholds"].items())
        click.echo(f"{click.style('medals'.ljust(12), bold=True)} {medals}")
    click.echo()
    click.echo(facts["description"])
