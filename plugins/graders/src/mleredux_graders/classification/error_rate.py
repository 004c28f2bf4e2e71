"""Classification error."""

from __future__ import annotations

from mleredux.plugin.grader import Rows, define

from mleredux_graders.classification.accuracy import accuracy
from mleredux_graders.classification.labels import LabelOptions, matched_labels


def _score(rows: Rows, options: LabelOptions) -> float:
    return 1.0 - accuracy(*matched_labels(rows, options), sample_weight=rows.weight)


GRADER = define("error-rate", "Classification error", "minimize", _score, options=LabelOptions, perfect=0.0)
