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

from typing import TYPE_CHECKING, Any

from mleredux._core.cli.backend import Backend as Backend
from mleredux._core.cli.backend import Batch as Batch
from mleredux._core.cli.backend import Record as Record
from mleredux._core.cli.backend import RunPage as RunPage
from mleredux._core.cli.backend import RunRequest as RunRequest
from mleredux._core.cli.backend import RunView as RunView
from mleredux._core.cli.commands.run import follow_runs as follow_runs
from mleredux._core.cli.commands.run import read_labels as read_labels
from mleredux._core.cli.commands.run import read_options as read_options
from mleredux._core.cli.consent import consent as consent
from mleredux._core.cli.consent import grant_options as grant_options
from mleredux._core.cli.consent import granted as granted
from mleredux._core.cli.consent import statement as statement
from mleredux._core.cli.context import backend as backend
from mleredux._core.cli.context import catalogue as catalogue
from mleredux._core.cli.exit_codes import EXIT_ENVIRONMENT_BROKE as EXIT_ENVIRONMENT_BROKE
from mleredux._core.cli.groups import CommandGroup as CommandGroup
from mleredux._core.cli.interrupts import cancelling as cancelling
from mleredux._core.cli.options import SERVER_VARIABLE as SERVER_VARIABLE
from mleredux._core.cli.options import Duration as Duration
from mleredux._core.cli.options import Megabytes as Megabytes
from mleredux._core.cli.options import data_dir_option as data_dir_option
from mleredux._core.cli.options import json_option as json_option
from mleredux._core.cli.options import runs_dir_option as runs_dir_option
from mleredux._core.cli.options import server_of as server_of
from mleredux._core.cli.options import store_option as store_option
from mleredux._core.cli.output import echo as echo
from mleredux._core.cli.output import print_facts as print_facts
from mleredux._core.cli.output import print_json as print_json
from mleredux._core.cli.output import print_table as print_table
from mleredux._core.cli.output import safe as safe
from mleredux._core.cli.output import write_log as write_log
from mleredux._core.moved import NAMES, moved
from mleredux._core.plugins import Catalogue as Catalogue
from mleredux._core.plugins import current as current
from mleredux.models import units as _units
from mleredux.models.imports import on_first_use as _on_first_use

if TYPE_CHECKING:
    from mleredux._core.cli.run_progress import Progress as Progress
    from mleredux._core.cli.run_table import print_results as print_results
    from mleredux._core.data.datastore import DataStore as DataStore

_SLOW = {
    "mleredux._core.cli.run_progress": "Progress",
    "mleredux._core.cli.run_table": "print_results",
    "mleredux._core.data.datastore": "DataStore",
}
_find = _on_first_use(__name__, _SLOW)[0]


def __getattr__(name: str) -> Any:
    return (moved(__name__, __name__, depth=3) if f"{__name__}.{name}" in NAMES else _find)(name)


read_duration = _units.seconds
