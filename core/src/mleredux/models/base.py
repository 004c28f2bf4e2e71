"""The base class of all models."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
"""The regular expression that ids match."""


class Model(BaseModel):
    """A frozen pydantic model that rejects unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
