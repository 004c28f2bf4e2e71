"""Options that all graders support. They are plain data, given as `Metric(grader=..., options={...})`."""

from __future__ import annotations

from typing import Literal

from mleredux.models.base import Model
from pydantic import Field

Match = Literal[
    "id",
    "join",
    "sorted",
    "sorted-known",
    "sorted-covering",
    "group-position",
    "same-order",
    "position",
    "position-shortest",
]
"""How rows of the submission are matched with rows of the answers; see `mleredux_tables.matching`."""

ColumnOrder = Literal["free", "strict", "file", "id-first"]


class Options(Model):
    """The options that all graders support."""

    match: Match = "id"
    """How rows of the submission are matched with rows of the answers: by ids, by order, or by a combination."""
    truth: tuple[str, ...] = ()
    """Columns of the answers with the true values, if their names differ from those of the target columns."""
    where: dict[str, str | int | float | bool] = Field(default={})
    """Score only rows whose answers have these values in these columns."""
    weight: str | None = None
    """Column of the answers with the weight of each row."""
    column_order: ColumnOrder = "free"
    """`strict`: ids and targets in exactly this order; `id-first`: ids first; `file`: targets by position."""

    synonyms: dict[str, str] = Field(default={})
    """Columns of the submission that are accepted instead of others, by their own name."""

    def form_columns(self) -> tuple[str, ...]:
        """Return columns of the answers that determine the form of a submission; validation also knows them."""
        return tuple(self.where)

    def answer_columns(self) -> tuple[str, ...]:
        """Return columns that the answers must have, in addition to ids and true values."""
        return (*self.form_columns(), *((self.weight,) if self.weight else ()))
