"""`mleredux plugins`."""

from __future__ import annotations

from typing import Any

import click

from mleredux._core.cli.context import catalogue
from mleredux._core.cli.output import json_option, print_json, print_table


@click.command()
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show each plugin: distribution, version, what it registers, and errors while loading it."""
    from mleredux import __version__
    from mleredux._core.plugins import KINDS
    from mleredux._core.plugins.loader import implemented_hooks

    found = catalogue(ctx)
    found.load_all()
    rows: list[dict[str, Any]] = []
    for plugin in found.plugins:
        registered = {
            kind: [entry.id for entry in found.entries(kind).values() if entry.plugin is plugin] for kind in KINDS
        }
        hooks = implemented_hooks(plugin, found.manager) if plugin.state == "loaded" else ()
        rows.append(
            {
                "name": plugin.name,
                "distribution": plugin.distribution,
                "version": __version__ if plugin.source == "built in" else plugin.version,
                "source": plugin.source,
                "state": plugin.state,
                "registers": {kind: ids for kind, ids in registered.items() if ids},
                "hooks": list(hooks),
                "errors": plugin.errors,
            }
        )
    if as_json:
        print_json(rows)
        return
    shown = [
        {**row, "registers": "; ".join(f"{len(ids)} {kind}" for kind, ids in row["registers"].items()) or None}
        for row in rows
    ]
    print_table(shown, ("name", "version", "state", "registers", "distribution", "source"))
    for problem in found.problems():
        click.echo(f"Error: {problem}", err=True)
