"""`mleredux human`."""

from __future__ import annotations

import click
from mleredux.plugin.command import CommandGroup


@click.group("human", cls=CommandGroup)
def command() -> None:
    """Work on a task yourself, with the same files, limits and report as an agent."""
