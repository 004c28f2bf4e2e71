"""What all documents share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MAX_ITEMS = 2_000
"""Longest list of a document."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=500)]
"""A column's or a class's name, as it stands in the table."""
Text = Annotated[str, StringConstraints(max_length=4_000)]
"""Free text: kept, not scored."""
Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class Part(BaseModel):
    """A part of a document. Types are exact, unknown fields are refused, numbers are finite."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Document(Part):
    """What an agent hands in."""

    notes: Text = Field(default="", description="Free text; kept, not scored.")


def once(names: Iterable[str], what: str) -> None:
    """Refuse a name that occurs twice.

    Raises:
        ValueError: One does.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{name[:60]!r} is among {what} twice")
        seen.add(name)
