"""Models of a run's results."""

from __future__ import annotations

from mleredux.plugin.artifact import VersionScore
from pydantic import BaseModel


class SampleView(BaseModel):
    """An agent's resource usage at a time; None if unknown."""

    seconds: float
    memory_mb: float | None
    cpu_seconds: float | None
    processes: int | None
    gpu_percent: float | None
    gpu_memory_mb: float | None


class Scores(BaseModel):
    """The score over time: every version of the submission, oldest first."""

    items: list[VersionScore]


class Resources(BaseModel):
    """The agent's resource usage over time."""

    items: list[SampleView]


class LogView(BaseModel):
    """A log of a run."""

    name: str
    size: int
