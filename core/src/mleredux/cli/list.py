"""`mleredux list`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mleredux.cli.output import data_dir_option, json_option, print_json, print_table
from mleredux.cli.root import catalogue
from mleredux.places import default_data_dir, looks_prepared

if TYPE_CHECKING:
    from mleredux.plugins import Catalogue

COLUMNS = {
    "tasks": ("id", "category", "metric", "direction", "complexity", "size_gb", "prepared", "plugin", "title"),
    "techniques": ("id", "variants", "plugin", "title"),
    "agents": ("id", "version", "network", "sandboxes", "plugin", "title"),
    "graders": ("id", "direction", "plugin", "title"),
    "sandboxes": ("id", "isolated", "plugin", "title"),
}


@click.command()
@click.argument("kind", type=click.Choice(tuple(COLUMNS)), default="tasks")
@click.option("--set", "sets", multiple=True, metavar="NAME", help="Only tasks of this set (low, starter, all …).")
@click.option("--category", help="Only tasks of this category.")
@click.option("--technique", metavar="ID", help="The tasks that this technique makes of them (cv, missing, …).")
@data_dir_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    kind: str,
    sets: tuple[str, ...],
    category: str | None,
    technique: str | None,
    data_dir: str | None,
    as_json: bool,
) -> None:
    """List tasks, techniques, agents, graders or sandboxes that are installed."""
    found = catalogue(ctx)
    chosen = set(found.task_names((), sets)) if sets else None
    rows = [
        {**entry.ref.summary, "id": entry.id, "plugin": entry.plugin.name}
        for entry in found.entries(kind).values()
        if chosen is None or entry.id in chosen
    ]
    if category is not None:
        rows = [row for row in rows if str(row.get("category", "")).lower() == category.lower()]
    if technique is not None:
        rows = _asked_of(found, technique, rows)
    if kind == "tasks":
        data = Path(data_dir) if data_dir else default_data_dir()
        rows = [{**row, "prepared": looks_prepared(data, row["id"])} for row in rows]
    if as_json:
        print_json(rows)
        return
    print_table(rows, COLUMNS[kind])
    for problem in found.problems():
        click.echo(f"Warning: {problem}", err=True)


def _asked_of(found: Catalogue, technique: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The technique's tasks, as far as categories tell; the rest shows when one is prepared."""
    if technique not in found.entries("techniques"):
        found.technique(technique)  # says what there is
    summary = found.entries("techniques")[technique].ref.summary
    facts = {"kind": "technique", "metric": technique, "direction": "maximize", "variants": summary["variants"]}
    return [
        {**row, **facts, "id": f"{technique}@{row['id']}", "title": f"{summary['title']}: {row['title']}"}
        for row in rows
        if not summary["categories"] or row.get("category") in summary["categories"]
    ]
