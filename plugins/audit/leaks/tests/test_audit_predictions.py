"""Predictions that a task hands out resemble the answers of necessity; answers among them are still found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mleredux._core.data import DataStore
from mleredux._core.plugins import Catalogue
from mleredux._core.stages.prepare import prepare
from mleredux_audit_leaks.audit import audit

Labels = pd.Series
PLANTED: dict[str, Callable[[Labels], Any]] = {
    "the target": lambda label: label,
    "another spelling": lambda label: label.map({0: "no", 1: "yes"}),
    "chances without an error": lambda label: np.abs(
        1 - label - np.random.default_rng(0).uniform(0, 0.3, len(label))
    ).round(4),
    "the target as a probability": lambda label: label * 0.998 + 0.001,
    "a model with errors": lambda label: label ^ (np.arange(len(label)) % 40 == 0),
}


@pytest.mark.parametrize("question", ["ensembling@breast-cancer", "ensembling@wine", "calibration@breast-cancer"])
def test_predictions_of_good_models_are_no_answers(question: str, mleredux_home: Path) -> None:
    catalogue = Catalogue()
    prepared = prepare(catalogue.task(question), catalogue, DataStore(None))
    report = audit(catalogue.task(question), prepared.public, prepared.private)
    assert report.findings == () and "predictions" in " ".join(path.name for path in prepared.public.iterdir())


@pytest.mark.parametrize("kind", PLANTED)
def test_only_answers_among_the_predictions_of_a_question_are_found(kind: str, mleredux_home: Path) -> None:
    catalogue = Catalogue()
    task = catalogue.task("ensembling@breast-cancer")
    prepared = prepare(task, catalogue, DataStore(None))
    answers = pd.read_csv(prepared.private / "test.csv.gz").set_index("id")["malignant"]
    table = pd.read_csv(path := prepared.public / "test_predictions.csv")
    table["trees 1"] = PLANTED[kind](answers.loc[table["id"]].reset_index(drop=True))
    path.chmod(0o644)
    table.to_csv(path, index=False)
    findings = audit(task, prepared.public, prepared.private).findings
    if kind == "a model with errors":
        assert findings == ()
        return
    [finding] = findings
    assert finding.severity == ("medium" if kind == "chances without an error" else "high")
    assert "'trees 1' of test_predictions.csv" in finding.message, finding
