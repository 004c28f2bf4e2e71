"""For authors of commands: shared options and output, and access to plugins and data.

A command is a click command, registered under its name::

    import click

    from mleredux.plugin.command import json_option, print_json

    @click.command()
    @json_option
    def command(as_json: bool) -> None:
        '''Count to three.'''
        print_json([1, 2, 3]) if as_json else click.echo("1 2 3")
"""

from __future__ import annotations

from mleredux._core.cli.backend import Backend, Batch, Record, RunPage, RunRequest, RunView
from mleredux._core.cli.commands.run import EXIT_ENVIRONMENT_BROKE, read_labels, read_options, see_through
from mleredux._core.cli.consent import consent, grant_options, granted, statement
from mleredux._core.cli.context import backend, catalogue
from mleredux._core.cli.groups import CommandGroup
from mleredux._core.cli.interrupts import cancelling
from mleredux._core.cli.options import (
    SERVER_VARIABLE,
    Duration,
    Megabytes,
    data_dir_option,
    json_option,
    runs_dir_option,
    server_of,
    store_option,
)
from mleredux._core.cli.output import echo, print_facts, print_json, print_table, safe, write_log
from mleredux._core.cli.run_progress import Progress
from mleredux._core.cli.run_table import closing_table
from mleredux._core.data.datastore import DataStore
from mleredux._core.plugins import Catalogue, current
from mleredux.models.units import seconds as read_duration

__all__ = [
    "EXIT_ENVIRONMENT_BROKE",
    "SERVER_VARIABLE",
    "Backend",
    "Batch",
    "Catalogue",
    "CommandGroup",
    "DataStore",
    "Duration",
    "Megabytes",
    "Progress",
    "Record",
    "RunPage",
    "RunRequest",
    "RunView",
    "backend",
    "cancelling",
    "catalogue",
    "closing_table",
    "consent",
    "current",
    "data_dir_option",
    "echo",
    "grant_options",
    "granted",
    "json_option",
    "print_facts",
    "print_json",
    "print_table",
    "read_duration",
    "read_labels",
    "read_options",
    "runs_dir_option",
    "safe",
    "see_through",
    "server_of",
    "statement",
    "store_option",
    "write_log",
]
