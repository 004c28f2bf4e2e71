"""`mleredux human`."""

from __future__ import annotations

import click
from mleredux.plugin.command import CommandGroup


@click.group("human", cls=CommandGroup)
def command() -> None:
    """Work on a task yourself: with its files, its limits and the report of any run."""
