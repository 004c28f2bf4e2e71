"""ROC AUC overall and within subgroups, combined by power means."""

from __future__ import annotations

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux.plugin.grader import Score
from mleredux_tables import Array, Options, Rows, define, numbers

from mleredux_graders.classification.roc_auc import roc_auc


class BiasOptions(Options):
    """Options of the metric."""

    identities: tuple[str, ...]
    """Columns of the answers with the degree to which a row belongs to a subgroup."""
    threshold: float = 0.5
    """Threshold at or above which a row is positive, or a member of a subgroup."""
    binarize: bool = False
    """Quirk of jigsaw-unintended-bias: predictions are binarized at the threshold before computing any AUC."""
    power: float = -5.0
    weight_of_each: float = 0.25

    def answer_columns(self) -> tuple[str, ...]:
        """Return the columns that the options name."""
        return (*super().answer_columns(), *self.identities)


def power_mean(values: Array, power: float) -> float:
    """Return the generalized mean (Hölder).

    Raises:
        InvalidSubmission: The mean is undefined: a value is 0 and the power is negative.
    """
    if power < 0 and (values == 0).any():
        raise InvalidSubmission("The score is undefined: all pairs of rows of a subgroup are ranked wrongly.")
    return float(np.mean(values**power) ** (1 / power))


def _read(rows: Rows, options: BiasOptions) -> Array:
    (target,) = rows.targets
    y_score = numbers(rows.predicted(target), target, finite=not options.binarize)
    return (y_score >= options.threshold).astype(np.float64) if options.binarize else y_score


def _score(rows: Rows, y_score: Array, options: BiasOptions) -> Score:
    (truth,) = rows.truth

    def positive(column: str) -> Array:
        above: Array = numbers(rows.true(column), column, finite=False) >= options.threshold
        return above

    y_true = positive(truth)

    def area(chosen: Array) -> float:
        return roc_auc(y_true[chosen].astype(np.float64), y_score[chosen])

    parts: dict[str, list[float]] = {"subgroup": [], "bpsn": [], "bnsp": []}
    for identity in options.identities:
        member = positive(identity)
        parts["subgroup"].append(area(member))
        parts["bpsn"].append(area(y_true != member))
        parts["bnsp"].append(area(y_true == member))
    overall = area(np.ones(len(y_true), dtype=bool))
    means = {name: power_mean(np.array(values), options.power) for name, values in parts.items()}
    value = options.weight_of_each * (overall + sum(means.values()))
    return Score(value=value, details={"overall": overall, **means})


GRADER = define(
    "bias-roc-auc",
    "ROC AUC overall and within subgroups",
    "maximize",
    _read,
    _score,
    options=BiasOptions,
    perfect=1.0,
)
