"""For authors of artifact producers, which create files from a run that has ended, and for code that reads runs.

A producer returns the files that it wrote in the run's folder::

    from mleredux.plugin import hookimpl
    from mleredux.plugin.artifact import Artifact, Run

    @hookimpl
    def mleredux_produce_artifacts(run: Run) -> list[Artifact]:
        words = len(run.agent_log.read_bytes().split()) if run.agent_log.is_file() else 0
        (run.path / "words.txt").write_text(f"{words}\\n")
        return [Artifact(path="words.txt", media_type="text/plain", producer="words")]
"""

from __future__ import annotations

from mleredux._core.sandboxes.timeline import FILE as TIMELINE_FILE
from mleredux._core.sandboxes.timeline import read_timeline
from mleredux._core.stages.produce import add_artifact
from mleredux._core.store import Run, RunStore, default_runs_dir
from mleredux._core.store.run import SCORES_FILE
from mleredux._core.store.states import FINAL, SubmissionVersion, final_state
from mleredux.models import (
    CAUSES,
    Artifact,
    Cause,
    Event,
    Evidence,
    LlmUse,
    Report,
    RunSpec,
    State,
    Verification,
    VersionScore,
)

__all__ = [
    "CAUSES",
    "FINAL",
    "SCORES_FILE",
    "TIMELINE_FILE",
    "Artifact",
    "Cause",
    "Event",
    "Evidence",
    "LlmUse",
    "Report",
    "Run",
    "RunSpec",
    "RunStore",
    "State",
    "SubmissionVersion",
    "Verification",
    "VersionScore",
    "add_artifact",
    "default_runs_dir",
    "final_state",
    "read_timeline",
]
