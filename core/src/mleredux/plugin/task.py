"""TODO task"""

from __future__ import annotations

from mleredux._core.archives import DamagedArchive, unpack
from mleredux._core.checksums import md5
from mleredux._core.installation import fingerprint, installation_salt
from mleredux._core.medals import read_leaderboard, thresholds
from mleredux._core.models import Competition, Metric, Resources, Submission, Task, Thresholds
from mleredux._core.models.base import ID_PATTERN, Model
from mleredux._core.models.grader import Direction
from mleredux._core.progress import tell

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
    "read_leaderboard",
    "tell",
    "thresholds",
    "unpack",
]
