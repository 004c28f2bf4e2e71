"""Twins of local verbs: the same arguments and options, checked alike; what is of this machine is refused by name."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import click
from click.core import ParameterSource
from mleredux.plugin.command import PREFIX, VERBS, VerbGroup, here_only

from mleredux_client.cli.service import translated

HERE = {
    "runs_dir": "--runs-dir is of this machine; a server keeps its runs where it was told to.",
    "data_dir": "--data-dir is of this machine; a server keeps its data where it was told to.",
    "base_image": "--base-image is of this machine; whoever runs the server sets it there.",
    "jobs": "--jobs is of this machine; how many runs go at once on a server follow from its slots and your quota.",
    "resume": "--resume is of this machine; a server goes on with its runs by itself, and "
    "`mleredux runs retry RUN` tries one again.",
}
"""Options of local verbs that no server takes, and why."""


class RemoteCommand(click.Command):
    """A verb whose errors of the service are told as mleredux's own."""

    here: Mapping[str, str] = {}

    def invoke(self, ctx: click.Context) -> Any:
        """As click does, after refusing what is of this machine."""
        for name, sentence in self.here.items():
            if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                raise click.UsageError(f"{sentence} Leave it out with --server.", ctx)
            ctx.params.pop(name, None)
        with translated(ctx):
            return super().invoke(ctx)


class RemoteGroup(VerbGroup):
    """A group of such verbs, plugins' (`remote runs …`) included; those of the local group say that they are local."""

    command_class = RemoteCommand

    def invoke(self, ctx: click.Context) -> Any:
        """As click does."""
        with translated(ctx):
            return super().invoke(ctx)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """As click does; a verb of the local group gets its own sentence."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            if ctx.info_name in VERBS:
                local = importlib.import_module(f"mleredux._core.cli.{ctx.info_name}").command
                with click.Context(local, info_name=ctx.info_name, parent=ctx.find_root()) as inside:
                    if args[0] in local.list_commands(inside):
                        ctx.fail(here_only(f"{ctx.info_name} {args[0]}"))
            raise

    @staticmethod
    def _prefix(ctx: click.Context) -> str:
        return f"{PREFIX}{ctx.info_name} "


def twin(
    name: str, local: click.Command, *more: Callable[[Any], Any], help: str | None = None
) -> Callable[[Callable[..., Any]], RemoteCommand]:
    """Make a function the twin of a local verb.

    Args:
        name: Of both verbs.
        local: The local one; the function gets the context and its options, but those in `HERE`.
        more: Options that only the twin has (`click.option(…)`).
        help: What `--help` says, where it differs.
    """

    def made(function: Callable[..., Any]) -> RemoteCommand:
        params = [copy.copy(param) for param in local.params]
        for param in params:
            if param.name in HERE and isinstance(param, click.Option):
                param.hidden = True
        further = RemoteCommand("more", callback=None)
        for option in more:
            option(further)
        # Last comes --json, as everywhere.
        params[-1:-1] = further.params
        command = RemoteCommand(name, callback=click.pass_context(function), params=params)
        command.help = help or local.help
        command.here = {param.name: HERE[param.name] for param in params if param.name in HERE}
        return command

    return made
