"""Scores between a naive and a strong choice, with uncertainty, from losses on the same splits.

The standard error of a mean over splits that share rows is the corrected one of C. Nadeau and Y. Bengio, "Inference for
the Generalization Error", Machine Learning 52 (2003): the variance times (1 / splits + held-out rows / training rows),
with Student's t distribution whose degrees of freedom are the number of splits minus one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mleredux_techniques._kit.data.dataset import Array
from mleredux_techniques._kit.judging.marks import Efficacy, Figure
from mleredux_techniques._kit.judging.reference import NAMES
from mleredux_techniques._kit.judging.scorer import Scorer

Losses = Sequence[float] | Array

CONFIDENCE = 0.975
"""A difference counts only if it exceeds this quantile of its noise."""
SMALLEST_GAP = 0.005
"""A difference counts only if it exceeds this share of the learnable range: a constant's loss minus the truth's."""


@dataclass(frozen=True)
class Difference:
    """The mean difference of losses over splits, with its standard error and the number of splits."""

    mean: float
    """The mean over splits."""
    standard_error: float
    """Its standard error, corrected for rows that splits share."""
    splits: int
    """The number of splits."""

    @property
    def significant(self) -> bool:
        """Return whether the difference is significantly greater than zero, by a t-test."""
        return self.mean > 0 and self.mean > self._bound

    @property
    def upper(self) -> float:
        """Return the upper end of the difference's confidence interval."""
        return self.mean + self._bound

    @property
    def _bound(self) -> float:
        from scipy.stats import t

        return float(t.ppf(CONFIDENCE, max(self.splits - 1, 1))) * self.standard_error

    @property
    def ratio(self) -> float:
        """Return the mean in standard errors; 0 if it is not positive."""
        return self.mean / max(self.standard_error, 1e-12) if self.mean > 0 else 0.0


@dataclass(frozen=True)
class Choice:
    """One of the three compared choices.

    Attributes:
        losses: One loss per split, lower is better.
        what: A description of the choice.
        role: The role of the naive choice, for the report.
    """

    losses: Array
    what: str
    role: str = "The choice made without analysis"


def difference(worse: Losses, better: Losses, overlap: float) -> Difference:
    """Return the mean difference of paired losses, with its standard error.

    Args:
        worse: Losses, one per split.
        better: Losses on the same splits.
        overlap: Ratio of held-out rows to training rows of a split; 0 if splits share no rows.
    """
    values = np.asarray(worse, dtype=float) - np.asarray(better, dtype=float)
    return Difference(float(values.mean()), standard_error(values, overlap), len(values))


def standard_error(values: Array, overlap: float) -> float:
    """Return the standard error of the mean of one value per split."""
    spread = float(values.var(ddof=1)) if len(values) > 1 else 0.0
    return math.sqrt(spread * (1 / len(values) + overlap))


def judge(
    naive: Choice,
    strong: Choice,
    recommended: Choice,
    *,
    overlap: float,
    scorer: Scorer,
    measure: str = f"{{metric}} of the best of {NAMES} on held-out training rows",
    sample: str = "",
    distances: bool = False,
) -> Efficacy:
    """Score the recommendation between the naive and the strong choice.

    The score is `(naive - recommended) / (naive - strong)` of mean losses, clipped to 0 … 1. If naive and strong do not
    differ significantly, there is no score, but a recommendation that is significantly worse than both gets 0.

    Args:
        overlap: Ratio of held-out rows to training rows of a split.
        scorer: The metric that the losses were computed with.
        measure: A description of the losses, for the report.
        sample: A sentence about the sample that was used, if any.
        distances: Whether the losses are distances between scores, which are shown unchanged.
    """
    shown = abs if distances else scorer.shown
    gap = difference(naive.losses, strong.losses, overlap)
    measure = measure.format(metric=scorer.title)
    choices = naive, strong, recommended
    means = [shown(float(choice.losses.mean())) for choice in choices]
    sentence = f"Recommended {means[2]:.4f}, naive {means[0]:.4f}, strong {means[1]:.4f}: {measure}"
    sentence += f", mean of {len(recommended.losses)} splits."
    decided = gap.significant and gap.mean > SMALLEST_GAP * scorer.unit
    score, error = None, None
    if decided:
        score = round(float(np.clip((naive.losses.mean() - recommended.losses.mean()) / gap.mean, 0, 1)), 4)
        error = round(_ratio_error(naive.losses - recommended.losses, naive.losses - strong.losses, overlap), 4)
        sentence += f" That is {score:.2f} ± {error:.2f} of the way from naive to strong."
    else:
        harm = [difference(recommended.losses, other.losses, overlap) for other in (naive, strong)]
        same = np.array_equal(naive.losses, strong.losses)
        sentence += " Naive and strong are equal" if same else " Naive and strong do not differ significantly"
        if all(gap_of.significant and gap_of.mean > SMALLEST_GAP * scorer.unit for gap_of in harm):
            score, error = 0.0, 0.0
            sentence += ", but the recommendation is worse."
        else:
            sentence += ": only the facts count."
    apart = {"mean": round(gap.mean, 5), "standard_error": round(gap.standard_error, 5), "decided": decided}
    figures = [Figure("efficacy", score, sentence, score=score, weight=1.0 if score is not None else 0.0)]
    subjects = naive.role, "The best of a panel, chosen on other splits", "The recommendation"
    for name, choice, subject in zip(("naive", "strong", "recommended"), choices, subjects, strict=True):
        value = {
            "mean": round(shown(float(choice.losses.mean())), 5),
            "standard_error": round(standard_error(choice.losses, overlap), 5),
            "by_split": [round(shown(float(loss)), 5) for loss in choice.losses],
        }
        figures.append(Figure(f"{name} choice", value, f"{scorer.task.metric.id}. {subject}: {choice.what}."))
    explanation = "The gain of strong over naive. Efficacy is scored if it is larger than its noise."
    figures.append(Figure("gap", apart, explanation))
    if sample:
        figures.append(Figure("sample", sample, "Larger tables are sampled."))
    naive_mean, strong_mean, given_mean = (round(mean, 5) for mean in means)
    return Efficacy(score, error, naive_mean, strong_mean, given_mean, figures, training=score)


def undecided(sentence: str) -> Efficacy:
    """Return a result without a score: the data can't distinguish a good recommendation from a bad one."""
    return Efficacy(parts=[Figure("efficacy", None, f"{sentence} Only the facts count.")])


def _ratio_error(gains: Array, gaps: Array, overlap: float) -> float:
    """Return a ratio's standard error by the delta method: that of `gain - ratio · gap`, divided by the mean gap."""
    gap = float(gaps.mean())
    return standard_error(gains - float(gains.mean()) / gap * gaps, overlap) / abs(gap)
