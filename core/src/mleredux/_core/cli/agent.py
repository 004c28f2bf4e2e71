"""`mleredux agent`."""

from __future__ import annotations

from typing import Any

import click

from mleredux._core.cli.groups import VerbGroup
from mleredux._core.cli.output import json_option, print_json
from mleredux._core.cli.root import catalogue
from mleredux._core.records import agent_record


@click.group(cls=VerbGroup)
def command() -> None:
    """Look at agents."""


@command.command()
@click.argument("agent")
@json_option
@click.pass_context
def show(ctx: click.Context, agent: str, as_json: bool) -> None:
    """Show an agent: command, options, limits, environment."""
    found = catalogue(ctx).agent(agent)
    print_agent(agent_record(found), as_json=as_json)


def print_agent(facts: dict[str, Any], *, as_json: bool) -> None:
    """An agent's facts."""
    if as_json:
        print_json(facts)
        return
    for name, value in facts.items():
        if value in (None, [], {}, ""):
            continue
        text = ", ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else value
        text = " ".join(map(str, value)) if isinstance(value, (list, tuple)) else text
        click.echo(f"{click.style(name.ljust(12), bold=True)} {text}")
