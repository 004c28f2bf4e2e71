"""The plugin and its graders keep to the contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mleredux_testing as testing
import pytest
from mleredux._core.plugins import current

LISTS = {"answers": testing.TOY_ANSWERS["lists"]}
ROWS = [[str(row), f"g{row % 3}", str(row % 4)] for row in range(24)]
GRADERS = {
    "map-at-k": LISTS,
    "mrr": LISTS,
    "ndcg-at-k": {"answers": (["id", "group", "target"], ROWS), "targets": ["target"], "options": {"group": "group"}},
}
"""Answers and options of graders that need particular ones."""

OWN_FORM = {
    "average-precision-boxes",
    "bias-roc-auc",
    "coco-map",
    "dice",
    "dice-hausdorff",
    "group-log-mae",
    "haversine-percentiles",
    "kl-divergence",
    "laplace-log-likelihood",
    "located-f1",
    "map-boxes-3d",
    "mask-fbeta",
    "mask-precision",
    "mean-angular-error",
    "natural-questions-f1",
    "weighted-log-loss",
}
"""Graders of boxes, masks, texts or several columns at once: toy answers don't fit, the published cases hold them."""

TRIED = [name for name in current().entries("graders") if name not in OWN_FORM]


@pytest.mark.parametrize("check", testing.checks("graders", only=TRIED, graders=GRADERS))
def test_conforms(check: Any, tmp_path: Path) -> None:
    check(tmp_path)
