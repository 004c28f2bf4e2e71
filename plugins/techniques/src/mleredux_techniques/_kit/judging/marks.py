"""Results, and comparison of answers with facts: numbers within tolerances, sets by F1, and weighted components."""

from __future__ import annotations

import math
import string
import tomllib
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from mleredux.models.formats import plain

NOTHING = 0.05
"""A component with nothing to find and nothing claimed keeps this share of its weight."""
COUNTS = 0.25
"""Maximum share of the total weight that is given to counts if there are judgments that the data decides."""
WRONG, MAIN = 0.4, 0.5
"""Upper bound of the score if a judgment that the data decides is completely wrong, and the share of the judgments'
weight that it needs for that; the bound rises with the square of the error, and for lesser judgments."""
EASY = 0.8
"""If one answer for all items has at least this score, the question shows nothing about those who answer it so well,
but not better than that answer."""
SHOWN, MOST_SHOWN = 12, 50


@dataclass(frozen=True)
class Figure:
    """One figure behind a score, with its explanation.

    Attributes:
        name: Name, such as `class counts` or `balanced accuracy of the naive choice`.
        value: The figure, as a JSON value.
        explanation: One or two sentences for readers of the report.
        score: If the figure is a component of the score: its share of the attainable score, in [0, 1].
        weight: The component's weight within its part; 0 if the figure is informational.
        decides: Whether the figure is a judgment that the data decides, rather than a count.
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
        score: The weighted mean of the parts' scores, but at most `limit`, in [0, 1].
        parts: The components.
        limit: Upper bound of the score because of judgments that are wrong; 1 if none is.
    """

    score: float
    parts: list[Figure] = field(default_factory=list)
    limit: float = 1.0

    @property
    def decided(self) -> bool:
        """Whether any part of the score is a judgment rather than a count."""
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


def close(answer: float, true: float, tolerance: float = 0.02, absolute: float = 0.0) -> float:
    """Return 1 if a value is within a relative tolerance of the truth, 0.5 within five times the tolerance, else 0.

    Args:
        absolute: Differences up to this are ignored.
    """
    off = max(0.0, abs(answer - true) - absolute)
    return 1.0 if off <= tolerance * abs(true) else 0.5 if off <= 5 * tolerance * abs(true) else 0.0


def f1(answers: Iterable[Any], true: Iterable[Any]) -> float:
    """Return the F1 score of two sets; 1 if both are empty."""
    answers, true = set(answers), set(true)
    return 2 * len(answers & true) / (len(answers) + len(true)) if answers or true else 1.0


def soft_f1(credits: float, claims: float, true: int) -> float:
    """Return the F1 score of `claims` statements about `true` facts, of which the sum of `credits` is right."""
    return 2 * credits / (claims + true) if claims + true else 1.0


def above(score: float, floors: Iterable[float]) -> float:
    """Return a score that is 0 up to the highest floor, and unchanged from a quarter of the way from there to 1.

    Args:
        floors: Scores that need no insight; those from `EASY` are ignored, since then the question decides nothing.
    """
    floor = max((value for value in floors if value < EASY), default=0.0)
    return score * min(1.0, max(0.0, 4 * (score - floor) / (1 - floor)))


def chance(*sizes: int) -> float:
    """Return the standard error of a guess, given the number of items of each kind.

    It is that of the mean, over the kinds, of the share that is right, rescaled so that 0 is expected and 1 is perfect.
    """
    return min(0.75, math.sqrt(sum(1 / size for size in sizes)) / len(sizes))


def informed(hits: float, false: float, are: int, others: int) -> float:
    """Return the lower of F1 and Youden's index above chance, so that guesses, or one answer everywhere, earn nothing.

    W. J. Youden, "Index for Rating Diagnostic Tests" (1950): the share of members that were named, minus the share of
    non-members that were named.

    Args:
        hits: Credits for members that were named.
        false: Number of non-members that were named.
        are: Number of members.
        others: Number of items that are certainly not members.
    """
    score, others = soft_f1(hits, math.ceil(hits + false), are), max(others, 1)
    return min(score, above(hits / are - false / others, [chance(are, others)])) if are else score


def component(name: str, weight: float, score: float, value: Any, explanation: str, *, decides: bool = False) -> Figure:
    """Return one component; `decides` is as in `Figure`."""
    return Figure(name, value, explanation, round(min(1.0, max(0.0, score)), 4), weight, decides)


def finding(
    name: str,
    weight: float,
    score: float,
    value: Any,
    explanation: str,
    *,
    true: int,
    given: int,
    decides: bool | None = None,
) -> Figure:
    """Return a component about things to find; its weight is small if there were none and none were claimed.

    Args:
        decides: As in `Figure`; None means true if there are things to find or some were claimed.
    """
    present = true > 0 or given > 0
    figure = component(name, weight, score, value, explanation, decides=present if decides is None else decides)
    return figure if present else replace(figure, weight=weight * NOTHING, empty=True)


@cache
def declaration(folder: Path) -> dict[str, Any]:
    """Return the content of a technique's `technique.toml`: fields of its `TechniqueSpec`, and its questions."""
    return tomllib.loads((folder / "technique.toml").read_text(encoding="utf-8"))


class _Plain(string.Formatter):
    """Formats numbers for people: `.3g` means three significant digits, and never an exponent."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        """Return a formatted value."""
        if format_spec.endswith("g"):
            return plain(value, int(format_spec[1:-1] or 12))
        return super().format_field(value, format_spec)


class Sheet:
    """The marks of one document: a figure for each question of the technique's `technique.toml`.

    The file has a table below `questions` for each: its `weight`, a sentence with figures in braces (`says`, or `none`
    if there is nothing to find), and optionally its `tolerance`, and `decides` as in `Figure`.
    """

    def __init__(self, module: str) -> None:
        """Read the questions next to a module, given as `__file__`."""
        self._questions = declaration(Path(module).parent)["questions"]
        self._figures: list[Figure] = []

    def figure(
        self, name: str, score: float, answer: Any, true: Any, *, of: tuple[int, int] | None = None, **figures: Any
    ) -> Figure:
        """Return the figure of a question.

        Args:
            of: The number of things to find, and of claims; None if the question always has an answer.
            figures: Figures for the sentence; `weight` and `decides` replace those of the file.
        """
        question = {**self._questions[name], **figures}
        form = question["none"] if of and not of[0] and "none" in question else question["says"]
        sentence = _Plain().format(form, **{"given": answer, "true": true, **figures})
        weight, decides = question["weight"], question.get("decides")
        value = versus(_with_ellipsis(answer), _with_ellipsis(true))
        if of is None:
            return component(name, weight, score, value, sentence, decides=bool(decides))
        return finding(name, weight, score, value, sentence, true=of[0], given=of[1], decides=decides)

    def mark(self, name: str, score: float, answer: Any, true: Any, **figures: Any) -> float:
        """Add the figure of a question, with the arguments of `figure`; return its score."""
        self._figures.append(self.figure(name, score, answer, true, **figures))
        return self._figures[-1].score or 0.0

    def same(self, name: str, answer: Any, true: Any, **figures: Any) -> None:
        """Mark an answer that is correct if it equals the truth."""
        self.mark(name, float(answer == true), answer, true, **figures)

    def number(self, name: str, answer: float, true: float, **figures: Any) -> None:
        """Mark a number, within the question's tolerance as in `close`."""
        self.mark(name, close(answer, true, self._questions[name].get("tolerance", 0.02)), answer, true, **figures)

    def duplicates(self, document: Any, truth: dict[str, Any]) -> None:
        """Mark the counts of duplicate rows in fields that cv and leakage share."""
        for name in ("duplicate_rows", "shared_rows"):
            answer, true = getattr(document, name), truth[name]
            self.number(name.replace("_", " "), answer, true, of=(true, answer))

    def measured(
        self, name: str, right: Sized, claims: Sized, true: Mapping[str, Any], *, listed: str = "", found: bool = False
    ) -> None:
        """Mark figures of several things by F1; `found` if there may be none, as in `finding`."""
        score, counts = soft_f1(len(right), len(claims), len(true)), (len(true), len(claims)) if found else None
        shown: dict[str, Any] = {"right": len(right), "all": len(true), "listed": listed}
        self.mark(name, score, len(claims), true, of=counts, **shown)

    def claims(self, name: str, answers: Iterable[Any], are: Iterable[Any], *, false: int = 0, **figures: Any) -> None:
        """Mark a set of things to find by F1; the sentence shows their list as `listed`.

        Args:
            false: Further claims that are certainly wrong.
        """
        answers, are = sorted(set(answers)), sorted(set(are))
        listed = listing(" and ".join(item) if isinstance(item, tuple) else str(item) for item in are)
        count = len(answers) + false
        score = soft_f1(len(set(answers) & set(are)), count, len(are))
        self.mark(name, score, answers, are, of=(len(are), count), listed=listed, **figures)

    def add(self, *figures: Figure) -> None:
        """Add figures."""
        self._figures += figures

    def facts(self) -> Facts:
        """Return all marks."""
        return facts_of(self._figures)


def facts_of(parts: list[Figure]) -> Facts:
    """Return the weighted mean of the components; counts weigh little if there are judgments that the data decides, and
    a judgment that is wrong limits the score.
    """
    scored = [figure for figure in parts if figure.score is not None and not figure.empty]
    decided, counts = (sum(figure.weight for figure in scored if figure.decides == which) for which in (True, False))
    empty = sum(figure.weight for figure in parts if figure.empty)
    share = min(1.0, max(0.0, COUNTS / (1 - COUNTS) * decided - empty) / counts) if decided and counts else 1.0
    parts = [
        figure if figure.decides or figure.empty else replace(figure, weight=round(share * figure.weight, 6))
        for figure in parts
    ]
    weight = sum(figure.weight for figure in parts if figure.score is not None)
    score = sum((figure.score or 0.0) * figure.weight for figure in parts) / weight if weight else 0.0
    errors = [
        (1 - (part.score or 0.0), min(1.0, part.weight / MAIN / decided)) for part in scored if part.decides and decided
    ]
    limit = round(min([1.0, *(1 - (1 - WRONG) * error**2 * share for error, share in errors)]), 4)
    return Facts(min(round(score, 4), limit), parts, limit)


def listing(names: Iterable[str]) -> str:
    """Join names for a sentence; return `none` if the list is empty."""
    listed = list(names)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return (", ".join(listed[:SHOWN]) + more) or "none"


def undecided(names: Iterable[str]) -> str:
    """Return the end of a list of things, which names those that the rows can't decide."""
    return f"; undecided: {listing(names)}" if (names := sorted(names)) else ""


def versus(answer: Any, true: Any) -> dict[str, Any]:
    """Format an answer next to the fact."""
    return {"given": answer, "true": true}


def shortened(mapping: Mapping[str, Any], limit: int = MOST_SHOWN) -> dict[str, Any]:
    """Return the first entries of a long mapping."""
    return dict(list(mapping.items())[:limit])


def _with_ellipsis(value: Any) -> Any:
    """Return the first entries of a long list or mapping, then the number of the others."""
    if not isinstance(value, list | Mapping) or len(value) <= MOST_SHOWN:
        return value
    more = f"and {len(value) - MOST_SHOWN} more"
    return [*value[:MOST_SHOWN], more] if isinstance(value, list) else {**shortened(value), "…": more}
