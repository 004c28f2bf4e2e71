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

from mleredux._core.sandboxes.timeline import TIMELINE_FILE as TIMELINE_FILE
from mleredux._core.sandboxes.timeline import read_timeline as read_timeline
from mleredux._core.stages.produce import add_artifact as add_artifact
from mleredux._core.store import Run as Run
from mleredux._core.store import RunStore as RunStore
from mleredux._core.store import default_runs_dir as default_runs_dir
from mleredux._core.store.run import SCORES_FILE as SCORES_FILE
from mleredux._core.store.states import FINAL as FINAL
from mleredux._core.store.states import SubmissionVersion as SubmissionVersion
from mleredux._core.store.states import final_state as final_state
from mleredux.models import CAUSES as CAUSES
from mleredux.models import Artifact as Artifact
from mleredux.models import Cause as Cause
from mleredux.models import Event as Event
from mleredux.models import Evidence as Evidence
from mleredux.models import LlmUse as LlmUse
from mleredux.models import Report as Report
from mleredux.models import RunSpec as RunSpec
from mleredux.models import State as State
from mleredux.models import Verification as Verification
from mleredux.models import VersionScore as VersionScore
