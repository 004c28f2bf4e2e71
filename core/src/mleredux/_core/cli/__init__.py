"""The command line. One file a command, imported when it is used, so that `--help` costs next to nothing.

| modules | contents |
|---|---|
| `root`, `groups`, `context` | global options; groups that plugins add to; what a command works with |
| `server`, `backend`, `local` | `--server`; the interface of back ends; this machine as one |
| `durations`, `consent` | types of options; what an agent asks for, and the question |
| `list`, `show`, `plugins`, `doctor`, `new` | commands that run nothing |
| `prepare`, `prepare_progress` | the data of tasks |
| `agent`, `run`, `run_progress`, `interrupts`, `run_table`, `watch` | runs: started, followed, cancelled, shown |
| `runs`, `logs`, `artifacts`, `export`, `prune` | what runs have left |
| `validate`, `grade`, `feedback` | submissions without an agent |
| `output` | tables for people, and one JSON document for programs |
"""

from mleredux._core.cli.root import main, program

__all__ = ["main", "program"]
