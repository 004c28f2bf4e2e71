"""Models of submissions of predictions."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from mleredux.plugin.artifact import Report
from pydantic import BaseModel


class SubmissionView(BaseModel):
    """Submitted predictions, with their grade once there is one."""

    id: str
    task: str
    status: Literal["queued", "grading", "done", "failed"]
    message: str | None
    """The current step, or why there is no grade."""
    report: Report | None
    size: int
    sha256: str
    project: str
    user: str
    created_at: datetime
    ended_at: datetime | None


class VerdictView(BaseModel):
    """Whether a file is well-formed, without its score."""

    valid: bool
    message: str
