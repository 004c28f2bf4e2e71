"""The command line. One file per command, imported on use, so that `--help` is fast.

| modules | contents |
|---|---|
| `root`, `groups`, `context` | global options; groups that plugins extend; the plugins and backend of a command |
| `backend`, `local` | the interface of backends; the backend of this machine |
| `consent` | an agent's requests, and the question to the user |
| `commands` | the commands of core |
| `prepare_progress`, `run_progress`, `interrupts` | progress of data and of runs; Ctrl-C |
| `completion` | names that the shell completes |
| `options` | `--server`; options of many commands, and their types |
| `run_table`, `exit_codes` | results of runs, and their exit codes |
| `output` | tables for people, one JSON document for programs, growing logs |
"""

from mleredux.__main__ import program  # for the scripts of development environments that are older than it

__all__ = ["program"]
