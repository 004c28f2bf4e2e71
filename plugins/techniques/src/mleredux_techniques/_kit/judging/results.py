"""Results of the two parts of a technique's score, with their explanations."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One figure behind a score, with its explanation.

    Attributes:
        name: Name, such as `class counts` or `balanced accuracy of the naive choice`.
        value: The figure, as a JSON value.
        explanation: One or two sentences for readers of the report.
        score: If the figure is a component of the score: its share of the attainable score, in [0, 1].
        weight: The component's weight within its part; 0 if the figure is informational.
        decides: Whether the figure is a judgement that the data decides, rather than a count.
        empty: Whether there was nothing to find and nothing was claimed.
    """

    name: str
    value: Any
    explanation: str
    score: float | None = None
    weight: float = 0.0
    decides: bool = False
    empty: bool = False


@dataclass(frozen=True)
class Facts:
    """The facts part: how well the document describes the data.

    Attributes:
        score: The weighted mean of the parts' scores, in [0, 1].
        parts: The components.
    """

    score: float
    parts: list[Figure] = field(default_factory=list)

    @property
    def decided(self) -> bool:
        """Whether any part of the score is a judgement rather than a count."""
        return any(part.decides and part.weight > 0 for part in self.parts)


@dataclass(frozen=True)
class Efficacy:
    """The efficacy part: the effect of executing the recommendation.

    Attributes:
        score: In [0, 1]: 0 = the naive choice or worse, 1 = the strong choice or better. None if naive and
            strong do not differ significantly and the recommendation is not harmful: the part's weight goes to the
            facts.
        uncertainty: Standard error of `score` over the seeds; None if `score` is None.
        naive: The result of the naive choice, in the unit of the measure.
        strong: The result of the strong choice.
        chosen: The result of the recommended choice.
        parts: The figures behind the results, with explanations.
        training: The score from training rows alone, which may be passed on to runs that are graded on the private test
            set; None if not available.
    """

    score: float | None = None
    uncertainty: float | None = None
    naive: float | None = None
    strong: float | None = None
    chosen: float | None = None
    parts: list[Figure] = field(default_factory=list)
    training: float | None = None


def as_json(part: Facts | Efficacy) -> dict[str, Any]:
    """Return a part as JSON-compatible values."""
    return asdict(part)
