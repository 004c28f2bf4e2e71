"""TODO command"""

from __future__ import annotations

from mleredux._core.api import plan
from mleredux._core.cli.durations import Duration, Megabytes
from mleredux._core.cli.groups import VerbGroup
from mleredux._core.cli.output import data_dir_option, json_option, print_json, print_table, runs_dir_option
from mleredux._core.cli.progress import Progress, printable, write_log
from mleredux._core.cli.remote import PREFIX, SERVER_VARIABLE, here_only, server_of
from mleredux._core.cli.root import VERBS, catalogue
from mleredux._core.cli.run import EXIT_ENVIRONMENT_BROKE, read_options
from mleredux._core.cli.summary import Shown, closing_table
from mleredux._core.data import DataStore
from mleredux._core.pipeline import Pipeline
from mleredux._core.plugins import Catalogue, current

__all__ = [
    "EXIT_ENVIRONMENT_BROKE",
    "PREFIX",
    "SERVER_VARIABLE",
    "VERBS",
    "Catalogue",
    "DataStore",
    "Duration",
    "Megabytes",
    "Pipeline",
    "Progress",
    "Shown",
    "VerbGroup",
    "catalogue",
    "closing_table",
    "current",
    "data_dir_option",
    "here_only",
    "json_option",
    "plan",
    "print_json",
    "print_table",
    "printable",
    "read_options",
    "runs_dir_option",
    "server_of",
    "write_log",
]
