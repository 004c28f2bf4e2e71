"""`mleredux experiment`."""

from __future__ import annotations

import click
from mleredux.plugin.command import CommandGroup


@click.group("experiment", cls=CommandGroup)
def group() -> None:
    """Plan, run and analyse experiments."""
