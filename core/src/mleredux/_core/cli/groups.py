"""Groups of verbs (`agent`, `runs`) that plugins add to: their verb `runs curve` is `curve` of the group `runs`."""

from __future__ import annotations

import click

from mleredux._core.cli.root import catalogue


class VerbGroup(click.Group):
    """Its own verbs first, then those of plugins, imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all verbs of the group."""
        return sorted({*super().list_commands(ctx), *self._of_plugins(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One verb; a plugin's is imported."""
        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name not in self._of_plugins(ctx):
            return own
        found: click.Command = catalogue(ctx).get("commands", f"{self._prefix(ctx)}{cmd_name}")
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Verbs with their short help, without importing those of plugins."""
        own = {name: command.get_short_help_str(limit=80) for name, command in self.commands.items()}
        with formatter.section("Verbs"):
            formatter.write_dl(sorted({**self._of_plugins(ctx), **own}.items()))

    def _of_plugins(self, ctx: click.Context) -> dict[str, str]:
        prefix = self._prefix(ctx)
        return {
            name.removeprefix(prefix): str(entry.ref.summary.get("title", ""))
            for name, entry in catalogue(ctx).entries("commands").items()
            if name.startswith(prefix)
        }

    @staticmethod
    def _prefix(ctx: click.Context) -> str:
        return f"{ctx.info_name} "
