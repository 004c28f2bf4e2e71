"""Groups of commands (`agent`, `runs`) that plugins add to: their `runs curve` is `curve` of the group `runs`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from mleredux._core.cli.root import catalogue
from mleredux._core.cli.server import Place, elsewhere, place_of, works


class CommandGroup(click.Group):
    """Its own commands first, then those of plugins, imported when they are used.

    Args:
        here: Names of its own commands that work on this machine only.
    """

    def __init__(self, *args: Any, here: Iterable[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.here = frozenset(here)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands of the group that work where they are asked for."""
        return sorted(name for name, (_, place) in self._known(ctx).items() if works(ctx, place))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command; a plugin's is imported."""
        if cmd_name not in self.list_commands(ctx):
            return None
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        found: click.Command = catalogue(ctx).get("commands", f"{ctx.info_name} {cmd_name}")
        return found

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """As click does; a command of the other place is refused by name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            known = self._known(ctx)
            if args[0] in known:
                ctx.fail(elsewhere(f"{ctx.info_name} {args[0]}", known[args[0]][1]))
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Commands with their short help, without importing those of plugins."""
        known = self._known(ctx)
        if names := self.list_commands(ctx):
            with formatter.section("Commands"):
                formatter.write_dl([(name, known[name][0]) for name in names])

    def _known(self, ctx: click.Context) -> dict[str, tuple[str, Place]]:
        """All commands of the group, with their short help and place."""
        prefix = f"{ctx.info_name} "
        added = {
            name.removeprefix(prefix): (str(entry.ref.summary.get("title", "")), place_of(entry.ref.summary))
            for name, entry in catalogue(ctx).entries("commands").items()
            if name.startswith(prefix)
        }
        own: dict[str, tuple[str, Place]] = {
            name: (command.get_short_help_str(limit=80), "here" if name in self.here else "both")
            for name, command in self.commands.items()
        }
        return {**added, **own}
