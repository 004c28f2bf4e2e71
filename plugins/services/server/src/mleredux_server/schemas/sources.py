"""Models of uploaded agents and of secrets."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field, SecretStr

from mleredux_server.schemas.body import Body
from mleredux_server.schemas.runs import Name


class SourceView(BaseModel):
    """An uploaded agent's folder."""

    id: str
    """Hash of all names and contents."""
    name: str
    agent: str
    """The reference to use in requests for runs."""
    project: str
    size: int
    """Size in bytes."""
    files: int
    created_at: datetime


class SecretRequest(Body):
    """A new value of a secret."""

    value: SecretStr = Field(min_length=8, max_length=16_384)
    project: Name | None = None
    """Id or name of the project that owns the secret; None: you own it."""
