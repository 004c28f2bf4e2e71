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

from mleredux._core.data.archives import DamagedArchive, unpack
from mleredux._core.data.checksums import md5
from mleredux._core.data.installation import fingerprint, installation_salt
from mleredux._core.data.medals import read_leaderboard, thresholds
from mleredux._core.data.neutral import neutral_order, settle_times
from mleredux._core.data.progress import tell as tell_progress
from mleredux._core.moved import moved
from mleredux.models import (
    Competition,
    Metric,
    Resources,
    Submission,
    Task,
    Thresholds,
)
from mleredux.models.base import ID_PATTERN, Model
from mleredux.models.grader import Direction

__all__ = [
    "ID_PATTERN",
    "Competition",
    "DamagedArchive",
    "Direction",
    "Metric",
    "Model",
    "Resources",
    "Submission",
    "Task",
    "Thresholds",
    "fingerprint",
    "installation_salt",
    "md5",
    "neutral_order",
    "read_leaderboard",
    "settle_times",
    "tell_progress",
    "thresholds",
    "unpack",
]

__getattr__ = moved(__name__, "mleredux_programs", {"Environment", "Execution"})
