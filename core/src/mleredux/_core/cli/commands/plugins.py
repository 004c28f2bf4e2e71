"""`mleredux plugins`, `mleredux plugins search`."""

from __future__ import annotations

from typing import Any

import click

from mleredux._core.cli.context import catalogue
from mleredux._core.cli.groups import CommandGroup
from mleredux._core.cli.options import json_option
from mleredux._core.cli.output import echo, print_json, print_table
from mleredux.models.formats import counted


@click.group(cls=CommandGroup, invoke_without_command=True, here=("search",))
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show each plugin: distribution, version, what it registers, and errors while loading it."""
    if ctx.invoked_subcommand is not None:
        return
    from mleredux import __version__
    from mleredux._core.plugins.discovery import KINDS, SINGULAR
    from mleredux._core.plugins.loader import implemented_hooks

    installed = catalogue(ctx)
    installed.load_all()
    rows: list[dict[str, Any]] = []
    for plugin in installed.plugins:
        owned = [
            (kind, entry) for kind in KINDS for entry in installed.entries(kind).values() if entry.plugin is plugin
        ]
        row = {name: getattr(plugin, name) for name in ("name", "distribution", "version", "source", "state", "errors")}
        row["registers"] = {kind: [entry.id for other, entry in owned if other == kind] for kind in dict(owned)}
        row["hooks"] = list(implemented_hooks(plugin, installed.manager)) if plugin.state == "loaded" else []
        rows.append(row | {"version": __version__} if plugin.source == "built in" else row)
    if as_json:
        print_json(rows)
        return
    for row in rows:
        kinds = [counted(len(ids), SINGULAR[kind]) for kind, ids in row["registers"].items()]
        hooks = [name.removeprefix("mleredux_").removeprefix("register_") for name in row["hooks"]]
        row["registers"] = "; ".join(kinds or hooks) or None
    print_table(rows, ("name", "version", "state", "registers", "distribution", "source"))
    for problem in installed.problems():
        echo(f"Error: {problem}", err=True)


@command.command("search")
@click.argument("words", nargs=-1)
@json_option
def search(words: tuple[str, ...], as_json: bool) -> None:
    """List known plugins, installed or not, whose name, summary or registered names contain all WORDS.

    The directory comes with mleredux. Other plugins have the keyword mleredux-plugin on the package index.
    """
    from mleredux._core.plugins.directory import directory

    matching = [entry for entry in directory() if entry.matches(words)]
    if as_json:
        print_json([entry.as_json() for entry in matching])
        return
    if not matching:
        click.echo("No plugin in the directory matches. Search the package index for the keyword mleredux-plugin.")
        return
    rows = [{"name": entry.name, "installed": entry.installed, "summary": entry.summary} for entry in matching]
    print_table(rows, ("name", "installed", "summary"))
    if missing := [entry.command for entry in matching if entry.installed is None]:
        click.echo(f"Install one with, e.g., `{missing[0]}`.")
