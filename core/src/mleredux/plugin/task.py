"""For authors of tasks: declarations, and tools for preparing data.

A task is an object registered by a plugin under its id::

    from pathlib import Path

    from mleredux.plugin.task import Metric, Submission, Task

    def prepare(raw: Path, public: Path, private: Path) -> None:
        (public / "sample_submission.csv").write_text("hour,height\\n1,0\\n")
        (private / "answers.csv").write_text("hour,height\\n1,2.5\\n")

    task = Task(
        id="tides",
        title="Tides",
        description=Path("description.md"),
        prepare=prepare,
        submission=Submission(id_columns=("hour",), target_columns=("height",)),
        metric=Metric(grader="rmse"),
        direction="minimize",
    )
"""

from __future__ import annotations

from mleredux._core.data import progress as _progress
from mleredux._core.data.archives import DamagedArchive as DamagedArchive
from mleredux._core.data.archives import unpack as unpack
from mleredux._core.data.checksums import md5 as md5
from mleredux._core.data.installation import fingerprint as fingerprint
from mleredux._core.data.installation import installation_salt as installation_salt
from mleredux._core.data.medals import read_leaderboard as read_leaderboard
from mleredux._core.data.medals import thresholds as thresholds
from mleredux._core.data.neutral import neutral_order as neutral_order
from mleredux._core.data.neutral import settle_times as settle_times
from mleredux._core.moved import moved
from mleredux.models import Competition as Competition
from mleredux.models import Metric as Metric
from mleredux.models import Resources as Resources
from mleredux.models import Submission as Submission
from mleredux.models import Task as Task
from mleredux.models import Thresholds as Thresholds
from mleredux.models.base import ID_PATTERN as ID_PATTERN
from mleredux.models.base import Model as Model
from mleredux.models.grader import Direction as Direction

tell_progress = _progress.report

__getattr__ = moved(__name__, "mleredux_programs", {"Environment", "Execution"})
