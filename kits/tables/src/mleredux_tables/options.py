"""Options that every grader takes. They are plain data, given as `Metric(grader=..., options={...})`."""

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
"""How rows of the submission find their rows of the answers; see `mleredux_tables.matching`."""

ColumnOrder = Literal["free", "strict", "file", "id-first"]


class Options(Model):
    """What every grader takes."""

    match: Match = "id"
    """How rows of the submission find their rows of the answers: by ids, by order, or by a combination."""
    truth: tuple[str, ...] = ()
    """Columns of the answers that hold the truth, where they are not named like the target columns."""
    where: dict[str, str | int | float | bool] = Field(default={})
    """Only rows are scored whose answers have these values in these columns."""
    weight: str | None = None
    """Column of the answers with the weight of each row."""
    column_order: ColumnOrder = "free"
    """`strict`: exactly that of ids and targets; `id-first`: the ids first; `file`: targets by place, not by name."""

    synonyms: dict[str, str] = Field(default={})
    """Columns of the submission that are taken for others, by their own name."""

    def form_columns(self) -> tuple[str, ...]:
        """Return columns of the answers that decide on the form of a submission; validation knows them too."""
        return tuple(self.where)

    def answer_columns(self) -> tuple[str, ...]:
        """Return columns that the answers must have, besides ids and truth."""
        return (*self.form_columns(), *((self.weight,) if self.weight else ()))
