"""Models of submissions of predictions."""

from __future__ import annotations

from pydantic import BaseModel


class VerdictView(BaseModel):
    """Whether a file is well-formed, without its score."""

    valid: bool
    message: str
