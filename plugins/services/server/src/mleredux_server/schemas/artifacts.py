"""What one gets out of a run, over the wire."""

from __future__ import annotations

from mleredux.plugin.artifact import VersionScore
from pydantic import BaseModel


class SampleView(BaseModel):
    """What an agent used at a time; None where that is not known."""

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
    """What the agent used over its time."""

    items: list[SampleView]


class LogView(BaseModel):
    """A log of a run."""

    name: str
    size: int
