"""Choices that the rows can't decide, and former helpers for comparing choices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from mleredux_techniques import kit
from mleredux_techniques._kit.declaration.grader import carry_out
from mleredux_techniques._kit.vocabulary import encoders
from mleredux_techniques.imbalance import document as imbalance
from mleredux_techniques.kit import Instance, Preprocessing
from pydantic import TypeAdapter
from technique_documents import TECHNIQUES
from technique_documents.bases import base_of, rare


@pytest.mark.parametrize("rows", [250, 900])
def test_doing_nothing_is_not_called_right_if_thresholds_may_be_better(rows: int) -> None:
    dataset = replace(rare(), metric="f1", direction="maximize")
    dataset = replace(dataset, train=dataset.train[:rows].reset_index(drop=True))
    for name in ("none", "TunedThresholdClassifierCV"):
        strategy: Any = TypeAdapter(imbalance.ImbalanceStrategy).validate_python({"name": name})
        document = imbalance.ImbalanceAnalysis.model_construct(strategies=[strategy])
        assert carry_out(TECHNIQUES["imbalance"], document, Instance(dataset, {}, base_of(dataset))).score is None


def test_helpers_of_plans_work_with_a_warning_until_they_are_removed() -> None:
    dataset = replace(rare(), metric="log-loss", direction="minimize")
    instance = Instance(dataset, {}, base_of(dataset))
    bad = {"x0": Preprocessing(encoding=encoders.DropFeature(name="drop"))}
    plans: dict[str, kit.Plan] = {"good": {}, "bad": bad}
    with pytest.warns(DeprecationWarning, match="choose will be removed from mleredux_techniques.kit in 0.4"):
        assert kit.choose(instance, plans) == "good"
    with pytest.warns(DeprecationWarning, match="gap will be removed"):
        assert kit.gap(instance, bad, {}).mean > 0
    with pytest.warns(DeprecationWarning, match="compare will be removed"):
        assert kit.compare(instance, naive=("a", bad), strong=("b", {}), given=("c", {})).score == 1
