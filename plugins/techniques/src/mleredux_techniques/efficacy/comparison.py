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

Array = np.ndarray[Any, Any]

BEYOND_NOISE = 2.0
"""A difference counts where it is larger than so many standard errors …"""
SMALLEST_GAP = 0.005
"""… and than this, in units of the loss (1: the model knows nothing)."""


@dataclass(frozen=True)
class Difference:
    """A mean difference of losses over splits, with its standard error."""

    mean: float
    standard_error: float

    @property
    def real(self) -> bool:
        """Whether it is larger than zero beyond noise."""
        return self.mean > max(BEYOND_NOISE * self.standard_error, SMALLEST_GAP)


def difference(worse: Sequence[float] | Array, better: Sequence[float] | Array, overlap: float) -> Difference:
    """How much larger the first losses are than the second, split by split.

    Args:
        worse: Losses, one a split.
        better: Losses on the same splits.
        overlap: Held-out rows / training rows of a split; 0 where splits share no rows.
    """
    values = np.asarray(worse, dtype=float) - np.asarray(better, dtype=float)
    spread = float(values.var(ddof=1)) if len(values) > 1 else 0.0
    return Difference(float(values.mean()), math.sqrt(spread * (1 / len(values) + overlap)))


@dataclass(frozen=True)
class Verdict:
    """What a recommendation is worth on some data.

    Attributes:
        score: 0 (naive or worse) to 1 (strong or better); None where the data do not tell naive from strong and the
            recommendation does no harm: then the weight of this part goes to the facts.
        standard_error: Of the score; None where there is none.
        sentence: What was found, for people.
        figures: The figures behind it, JSON-able.
    """

    score: float | None
    standard_error: float | None
    sentence: str
    figures: dict[str, Any]


def judge(
    naive: Sequence[float] | Array,
    strong: Sequence[float] | Array,
    given: Sequence[float] | Array,
    *,
    overlap: float,
    loss: str,
) -> Verdict:
    """Where the recommendation stands between naive and strong.

    The score is `(naive - given) / (naive - strong)`, clipped to 0 … 1, of mean losses. Where naive and strong do not
    differ beyond noise, nothing can be earned here, but a recommendation that is worse than both beyond noise gets 0.

    Args:
        naive: Losses of the naive choice, one a split, lower is better.
        strong: Of the strong choice.
        given: Of the recommendation.
        overlap: Held-out rows / training rows of a split.
        loss: What the losses are, for the report.
    """
    naive, strong, given = (np.asarray(losses, dtype=float) for losses in (naive, strong, given))
    gap, gain = difference(naive, strong, overlap), difference(naive, given, overlap)
    figures: dict[str, Any] = {
        "loss": loss,
        "splits": len(naive),
        "naive": _mean(naive, overlap),
        "strong": _mean(strong, overlap),
        "recommended": _mean(given, overlap),
        "naive_minus_strong": _rounded(gap),
        "naive_minus_recommended": _rounded(gain),
        "decided": gap.real,
    }
    told = (
        f"{loss}: recommended {given.mean():.4f}, naive {naive.mean():.4f}, strong {strong.mean():.4f} "
        f"(mean of {len(naive)} splits)"
    )
    if not gap.real:
        harm = difference(given, naive, overlap)
        if harm.real and difference(given, strong, overlap).real:
            sentence = (
                f"{told}. Naive and strong do not differ beyond noise here, but the recommendation is worse than both."
            )
            return Verdict(0.0, 0.0, sentence, figures)
        sentence = f"{told}. Naive and strong do not differ beyond noise, so these data don't judge; the facts do."
        return Verdict(None, None, sentence, figures)
    ratio = gain.mean / gap.mean
    error = _ratio_error(naive - given, naive - strong, overlap)
    score = min(1.0, max(0.0, ratio))
    figures["unclipped"] = round(ratio, 4)
    return Verdict(round(score, 4), round(error, 4), f"{told}: {score:.2f} ± {error:.2f} of the way to strong.", figures)


def _ratio_error(gains: Array, gaps: Array, overlap: float) -> float:
    """The delta method for the ratio of two means: the spread of `gain - ratio * gap`, over the mean gap."""
    gap = float(gaps.mean())
    rest = gains - float(gains.mean()) / gap * gaps
    spread = float(rest.var(ddof=1)) if len(rest) > 1 else 0.0
    return math.sqrt(spread * (1 / len(rest) + overlap)) / abs(gap)


def _mean(losses: Array, overlap: float) -> dict[str, Any]:
    spread = float(losses.var(ddof=1)) if len(losses) > 1 else 0.0
    return {
        "mean": round(float(losses.mean()), 5),
        "standard_error": round(math.sqrt(spread * (1 / len(losses) + overlap)), 5),
        "by_split": [round(float(value), 5) for value in losses],
    }


def _rounded(value: Difference) -> dict[str, float]:
    return {"mean": round(value.mean, 5), "standard_error": round(value.standard_error, 5)}
