"""`mleredux agent`."""

from __future__ import annotations

import click

from mleredux._core.cli.context import backend
from mleredux._core.cli.groups import CommandGroup
from mleredux._core.cli.options import json_option
from mleredux._core.cli.output import print_facts, print_json


@click.group(cls=CommandGroup)
def command() -> None:
    """Show agents, check or build them."""


@command.command()
@click.argument("agent")
@json_option
@click.pass_context
def show(ctx: click.Context, agent: str, as_json: bool) -> None:
    """Show an agent: command, options, limits, environment."""
    facts = backend(ctx).agent(agent)
    command = " ".join(facts.get("command") or ())
    print_json(facts) if as_json else print_facts({**facts, "command": command})
