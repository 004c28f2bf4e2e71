"""Models of a run's results."""

from __future__ import annotations

from mleredux.models import Sample
from mleredux.plugin.artifact import VersionScore
from pydantic import BaseModel


class Scores(BaseModel):
    """The score over time: every version of the submission, oldest first."""

    items: list[VersionScore]


class Resources(BaseModel):
    """The agent's resource usage over time."""

    items: list[Sample]
