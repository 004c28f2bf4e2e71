"""The command line. One file a command, imported when it is used, so that `--help` costs next to nothing.

| modules | contents |
|---|---|
| `root`, `groups`, `context` | global options; groups that plugins add to; what a command works with |
| `backend`, `local` | the interface of back ends; this machine as one |
| `consent` | what an agent asks for, and the question |
| `commands` | the commands of core |
| `prepare_progress`, `run_progress`, `interrupts` | progress of data and of runs; Ctrl-C |
| `options` | `--server`; options of many commands, and their types |
| `run_table`, `output` | results of runs; tables for people, and one JSON document for programs |
"""

from mleredux._core.cli.root import main, program

__all__ = ["main", "program"]
