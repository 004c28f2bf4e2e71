"""Runs on disk: the directories are authoritative; the SQLite index is a cache.

| module | contents |
|---|---|
| `runs` | all runs of a directory, and their index |
| `run` | one run: its directory, state, events and files; the ticket of the job that may execute it |
| `events`, `states` | the log of a run; the state that results from its events |
| `files` | writing files atomically, opening regular ones |
| `sparse` | copying and moving files with holes, and removing hostile trees |
"""

from mleredux._core.store.run import Run
from mleredux._core.store.runs import RunStore, default_runs_dir
from mleredux._core.store.states import SubmissionVersion

__all__ = ["Run", "RunStore", "SubmissionVersion", "default_runs_dir"]
