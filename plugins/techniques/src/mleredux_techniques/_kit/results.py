"""What the two parts of a technique's score give: figures with their explanations."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One figure behind a score, and what it means.

    Attributes:
        name: What it is of: `class counts`, `balanced accuracy of the naive choice`.
        value: The figure, JSON-able.
        explanation: One or two sentences for the reader of the report.
        score: Where the figure is a component of the score: its share of the attainable, in [0, 1].
        weight: The component's weight within its part; 0 where the figure only informs.
    """

    name: str
    value: Any
    explanation: str
    score: float | None = None
    weight: float = 0.0


@dataclass(frozen=True)
class Facts:
    """The facts part: how well the document says what is in the data.

    Attributes:
        score: In [0, 1], the weighted mean of the parts' scores.
        parts: The components.
    """

    score: float
    parts: list[Figure] = field(default_factory=list)


@dataclass(frozen=True)
class Efficacy:
    """The efficacy part: what the recommendation does when it is carried out.

    Attributes:
        score: In [0, 1]: 0 = the naive choice or worse, 1 = the strong choice or better. None where these data don't
            tell naive from strong beyond noise and the recommendation does no harm: nothing is earned or lost here, the
            part's weight goes to the facts.
        uncertainty: Standard error of `score` over the seeds; None with it.
        naive: What the naive choice reached, in the unit of the part's own measure.
        strong: What the strong choice reached.
        chosen: What the recommended choice reached.
        parts: The figures behind them, with explanations.
    """

    score: float | None
    uncertainty: float | None
    naive: float | None
    strong: float | None
    chosen: float | None
    parts: list[Figure] = field(default_factory=list)


def as_json(part: Facts | Efficacy) -> dict[str, Any]:
    """A part as plain values."""
    return asdict(part)
