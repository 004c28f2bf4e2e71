"""Groups of commands that plugins can extend: a plugin's `runs plot` becomes `plot` in the group `runs`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from mleredux._core.cli.context import catalogue
from mleredux._core.cli.options import Place, check_values, is_available, place_of, wrong_place_message
from mleredux._core.cli.output import echo
from mleredux._core.moved import OPTIONS, REMOVAL


class CommandGroup(click.Group):
    """A group that lists its own commands first, then those of plugins; commands are imported on use.

    Args:
        here: Names of the group's own commands that run on this machine only.
        renamed: Former names of the group's commands, with the names that replaced them.
    """

    def __init__(
        self, *args: Any, here: Iterable[str] = (), renamed: Mapping[str, str] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.here = frozenset(here)
        self.renamed = dict(renamed or {})

    def own(self) -> dict[str, tuple[str, Place]]:
        """Return the group's own commands, with their short help and place."""
        return {
            name: (command.get_short_help_str(limit=80), "here" if name in self.here else "both")
            for name, command in self.commands.items()
        }

    def known(self, ctx: click.Context) -> dict[str, tuple[str, Place]]:
        """Return all commands of the group, including those of plugins, with their short help and place."""
        prefix = _prefix(ctx)
        added = {
            name.removeprefix(prefix): (str(entry.ref.summary.get("title", "")), place_of(entry.ref.summary))
            for name, entry in catalogue(ctx).entries("commands").items()
            if name.startswith(prefix) and " " not in name.removeprefix(prefix)
        }
        return {**added, **self.own()}

    def shown(self, ctx: click.Context) -> dict[str, str]:
        """Return the commands that are available with the selected backend, sorted, with their short help."""
        return {name: title for name, (title, place) in sorted(self.known(ctx).items()) if is_available(ctx, place)}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands of the group that are available with the selected backend."""
        return list(self.shown(ctx))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, importing it if a plugin provides it."""
        if cmd_name not in self.shown(ctx):
            return self._renamed(ctx, cmd_name)
        command: click.Command | None = super().get_command(ctx, cmd_name)
        return command or catalogue(ctx).get("commands", f"{_prefix(ctx)}{cmd_name}")

    def _renamed(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command that formerly had this name, with a warning; for the first word of a former name, return a
        group.
        """
        former = f"{_prefix(ctx)}{cmd_name}"
        names = {f"{_prefix(ctx)}{old}": f"{_prefix(ctx)}{new}" for old, new in self.renamed.items()}
        for name, entry in catalogue(ctx).entries("commands").items():
            if is_available(ctx, place_of(entry.ref.summary)):
                names |= dict.fromkeys(entry.ref.summary.get("formerly", ()), name)
        if former in names:
            echo(f"`mleredux {former}` is now `mleredux {names[former]}`; {REMOVAL}", err=True)
            own = self.renamed.get(cmd_name)
            return self.commands[own] if own else catalogue(ctx).get("commands", names[former])
        return CommandGroup(cmd_name) if any(name.startswith(f"{former} ") for name in names) else None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Resolve a command as click does; an unknown command is rejected with one sentence."""
        try:
            resolved = super().resolve_command(ctx, args)
            if resolved[1] is not None:
                check_values(resolved[1])
            if ctx.resilient_parsing and resolved[1] is not None:  # for completion
                from mleredux._core.cli.completion import complete

                complete(resolved[1])
            return (*resolved[:2], _present_options(f"{_prefix(ctx)}{resolved[0]}", *resolved[1:]))
        except click.UsageError:
            self.explain_missing(ctx, args[0])
            raise

    def explain_missing(self, ctx: click.Context, name: str) -> None:
        """Reject a command that needs the other backend, or a missing package; suggest similar ones."""
        import difflib

        from mleredux._core.cli.commands.list import COLUMNS
        from mleredux._core.plugins.directory import installing

        known = self.known(ctx)
        if name in known:
            ctx.fail(wrong_place_message(f"{_prefix(ctx)}{name}", known[name][1]))
        if listed := installing("commands", f"{_prefix(ctx)}{name}"):
            ctx.fail(f"No such command {name!r}. {listed}")
        word, root = ctx.info_name if name in ("list", "ls") else name, ctx.find_root()
        near = [f"`mleredux list {kind}`" for kind in COLUMNS if word in (kind, kind[:-1])]
        near = near or [f"`{ctx.command_path}`"] * (word != name and self.invoke_without_command)
        if root is not ctx and not near and isinstance(root.command, CommandGroup) and name in root.command.shown(root):
            ctx.fail(f"No such command {name!r}. Did you mean `mleredux {name}`?")
        below = (entry for entry in catalogue(ctx).entries("commands") if entry.startswith(_prefix(ctx)))
        deeper = {entry.rpartition(" ")[2]: entry.removeprefix(_prefix(ctx)) for entry in below}
        near = near or difflib.get_close_matches(name, self.shown(ctx), n=2)
        near = near or [deeper[word] for word in difflib.get_close_matches(name, deeper, n=2)]
        others = "" if ctx is root else f" The commands are: {', '.join(self.shown(ctx))}."
        ctx.fail(f"No such command {name!r}." + (f" Did you mean {' or '.join(near)}?" if near else others))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Format commands with their short help, without importing any of them."""
        if shown := self.shown(ctx):
            with formatter.section("Commands"):
                formatter.write_dl(list(shown.items()))


def _prefix(ctx: click.Context) -> str:
    """Return the prefix of the names of a group's commands in the catalogue."""
    return f"{ctx.command_path.removeprefix(f'{ctx.find_root().command_path} ')} " if ctx.parent else ""


def _present_options(path: str, command: click.Command | None, args: list[str]) -> list[str]:
    """Replace former option names in a command's arguments with the present ones, and warn about them."""
    declared = {name for param in (command.params if command else ()) for name in param.opts}
    end = args.index("--") if "--" in args else len(args)
    for place, word in enumerate(args[:end]):
        old = word.partition("=")[0] if word.startswith("--") else word[:2]
        new = OPTIONS.get(old, old)
        if new in declared and old not in declared:
            echo(f"`{old}` of `mleredux {path}` is now `{new}`; {REMOVAL}", err=True)
            args[place] = f"{new}{word.removeprefix(old)}"
    return args
