"""Base classes of all documents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Self

from mleredux_rollout.models import described
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

MAX_ITEMS = 2_000
"""Maximum length of a list in a document."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=500)]
"""The name of a column or class, spelled as in the table."""
Text = Annotated[str, StringConstraints(max_length=4_000)]
"""Free text: stored, not scored."""
Count = Annotated[int, Field(ge=0)]
"""A count, from 0."""
Share = Annotated[float, Field(ge=0, le=1)]
"""A share, from 0 to 1."""


class Part(BaseModel):
    """A part of a document. Types are strict, unknown fields are rejected, numbers must be finite.

    The docstrings of fields are their descriptions in the schema that agents read.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
    __get_pydantic_json_schema__ = described


class Document(Part):
    """The document that an agent submits."""

    notes: Text = Field(default="", description="Free text; stored, not scored.")
    rationale: Text = Field(default="", description="The reasons, as free text; stored, not scored.")

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        for name, items in self:
            for key in ("column", "model") if isinstance(items, list) else ():
                once((getattr(item, key) for item in items if hasattr(item, key)), name)
        self._agrees_with_itself()
        return self

    def _agrees_with_itself(self) -> Any:
        """Raise a ValueError if parts of the document contradict each other."""


def once(names: Iterable[str], what: str) -> None:
    """Reject duplicate names.

    Raises:
        ValueError: A name occurs twice.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{name[:60]!r} occurs twice in {what}")
        seen.add(name)
