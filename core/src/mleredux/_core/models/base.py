"""What all models share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
"""The regular expression that ids match."""


class Model(BaseModel):
    """A frozen pydantic model that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
