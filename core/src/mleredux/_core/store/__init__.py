"""Runs on disk: directories are the truth, the SQLite index over them is a cache.

| module | contents |
|---|---|
| `runs` | all runs of a directory, and their index |
| `run` | one run: its directory, state, events and files; the ticket of the job that may execute it |
| `events`, `states` | the log of a run; the state that its events amount to |
| `files`, `trees`, `sparse` | files written as a whole; hostile trees removed; files with holes copied and moved |
"""

from mleredux._core.store.run import Run
from mleredux._core.store.runs import RunStore, default_runs_dir
from mleredux._core.store.states import SubmissionVersion

__all__ = ["Run", "RunStore", "SubmissionVersion", "default_runs_dir"]
