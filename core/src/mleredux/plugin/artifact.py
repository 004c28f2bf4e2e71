"""TODO artifact"""

from __future__ import annotations

from mleredux._core.models import CAUSES, Artifact, Cause, Event, LlmUse, Manifest, Report, RunSpec, State, VersionScore
from mleredux._core.sandboxes.timeline import FILE, Sample, read_timeline
from mleredux._core.stages.produce import add_artifact
from mleredux._core.store import Run, RunStore, default_runs_dir
from mleredux._core.store.run import SCORES_FILE
from mleredux._core.store.states import final_state

__all__ = [
    "CAUSES",
    "FILE",
    "SCORES_FILE",
    "Artifact",
    "Cause",
    "Event",
    "LlmUse",
    "Manifest",
    "Report",
    "Run",
    "RunSpec",
    "RunStore",
    "Sample",
    "State",
    "VersionScore",
    "add_artifact",
    "default_runs_dir",
    "final_state",
    "read_timeline",
]
