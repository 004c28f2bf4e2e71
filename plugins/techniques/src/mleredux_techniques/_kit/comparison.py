"""From losses on the same splits to a score between a naive and a strong choice, with its uncertainty.

The standard error of a mean over splits that share rows is the corrected one of C. Nadeau and Y. Bengio, "Inference for
the Generalization Error", Machine Learning 52 (2003): the variance times (1 / splits + held-out rows / training rows).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mleredux_techniques._kit.results import Efficacy, Figure

Array = np.ndarray[Any, Any]
Losses = Sequence[float] | Array

BEYOND_NOISE = 2.0
"""A difference counts if it is larger than this number of standard errors …"""
SMALLEST_GAP = 0.005
"""… and larger than this, in units of the loss (1: nothing was learned)."""


@dataclass(frozen=True)
class Difference:
    """A mean difference of losses over splits, with its standard error."""

    mean: float
    standard_error: float

    @property
    def real(self) -> bool:
        """Whether it is significantly larger than zero."""
        return self.mean > max(BEYOND_NOISE * self.standard_error, SMALLEST_GAP)


@dataclass(frozen=True)
class Choice:
    """One of the three compared choices.

    Attributes:
        losses: One per split, lower is better.
        what: A description of the choice.
    """

    losses: Array
    what: str

    @property
    def mean(self) -> float:
        """The mean loss."""
        return round(float(self.losses.mean()), 5)


def difference(worse: Losses, better: Losses, overlap: float) -> Difference:
    """Return the mean difference of paired losses, with its standard error.

    Args:
        worse: Losses, one per split.
        better: Losses on the same splits.
        overlap: Held-out rows / training rows of a split; 0 if splits share no rows.
    """
    values = np.asarray(worse, dtype=float) - np.asarray(better, dtype=float)
    return Difference(float(values.mean()), standard_error(values, overlap))


def standard_error(values: Array, overlap: float) -> float:
    """Return the standard error of the mean of values, one per split."""
    spread = float(values.var(ddof=1)) if len(values) > 1 else 0.0
    return math.sqrt(spread * (1 / len(values) + overlap))


def judge(naive: Choice, strong: Choice, given: Choice, *, overlap: float, measure: str, sample: str = "") -> Efficacy:
    """Score the recommendation between the naive and the strong choice.

    The score is `(naive - given) / (naive - strong)` of mean losses, clipped to 0 … 1. If naive and strong do not
    differ significantly, there is no score, but a recommendation that is significantly worse than both gets 0.

    Args:
        overlap: Held-out rows / training rows of a split.
        measure: A description of the losses, for the report.
        sample: One sentence on the sample that was used, if any.
    """
    gap = difference(naive.losses, strong.losses, overlap)
    figures = [
        _figure(name, choice, overlap, f"{measure}; lower is better. {said}: {choice.what}.")
        for name, choice, said in (
            ("naive choice", naive, "The default, without analysis"),
            ("strong choice", strong, "The best of a panel, chosen on the training table"),
            ("recommended choice", given, "What was recommended"),
        )
    ]
    told = f"Recommended {given.mean:.4f}, naive {naive.mean:.4f}, strong {strong.mean:.4f}: {measure}"
    told += f", mean of {len(given.losses)} splits."
    score, error, told = _score(naive, strong, given, gap, overlap, told)
    apart = {"mean": round(gap.mean, 5), "standard_error": round(gap.standard_error, 5), "decided": gap.real}
    figures.append(Figure("naive less strong", apart, "Efficacy is scored if this is larger than its noise."))
    if sample:
        figures.append(Figure("sample", sample, "Larger tables are sampled."))
    head = Figure("efficacy", score, told, score=score, weight=1.0 if score is not None else 0.0)
    return Efficacy(score, error, naive.mean, strong.mean, given.mean, [head, *figures])


def undecided(sentence: str) -> Efficacy:
    """Return a result without a score: the data can't distinguish a good recommendation from a bad one."""
    return Efficacy(None, None, None, None, None, [Figure("efficacy", None, f"{sentence} Only the facts count.")])


def _score(
    naive: Choice, strong: Choice, given: Choice, gap: Difference, overlap: float, told: str
) -> tuple[float | None, float | None, str]:
    if gap.real:
        score = (naive.losses.mean() - given.losses.mean()) / gap.mean
        error = _ratio_error(naive.losses - given.losses, naive.losses - strong.losses, overlap)
        score = round(float(min(1.0, max(0.0, score))), 4)
        return score, round(error, 4), f"{told} That is {score:.2f} ± {error:.2f} of the way from naive to strong."
    harmed = all(difference(given.losses, other.losses, overlap).real for other in (naive, strong))
    if harmed:
        return 0.0, 0.0, f"{told} Naive and strong do not differ significantly, but the recommendation is worse."
    return None, None, f"{told} Naive and strong do not differ significantly: only the facts count."


def _ratio_error(gains: Array, gaps: Array, overlap: float) -> float:
    """Return a ratio's standard error by the delta method: that of `gain - ratio · gap`, over the mean gap."""
    gap = float(gaps.mean())
    return standard_error(gains - float(gains.mean()) / gap * gaps, overlap) / abs(gap)


def _figure(name: str, choice: Choice, overlap: float, explanation: str) -> Figure:
    value = {
        "mean": choice.mean,
        "standard_error": round(standard_error(choice.losses, overlap), 5),
        "by_split": [round(float(loss), 5) for loss in choice.losses],
    }
    return Figure(name, value, explanation)
