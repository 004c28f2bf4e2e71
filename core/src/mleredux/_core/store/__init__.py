"""Runs on disk: directories are the truth, the SQLite index over them is a cache."""

from mleredux._core.store.run import Run
from mleredux._core.store.runs import RunStore, default_runs_dir
from mleredux._core.store.states import SubmissionVersion

__all__ = ["Run", "RunStore", "SubmissionVersion", "default_runs_dir"]
