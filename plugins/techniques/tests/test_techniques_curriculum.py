"""What is passed on tells nothing of the labels by which the next run is graded."""

from __future__ import annotations

import shutil
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mleredux._core.plugins.catalogue import set_current
from mleredux.models import GradingInput, Score
from mleredux_agent_analyst.tables import read
from mleredux_techniques._kit.declaration.preparation import prepare
from mleredux_techniques.curriculum import collect, text

TECHNIQUES = ("leakage", "cv")
"""One whose truth needs labels of the test, one whose efficacy does."""


class _Runs:
    """Graded runs of all techniques, as a run store gives them."""

    path = "here"

    def __init__(self, found: dict[str, SimpleNamespace]) -> None:
        self.found = found

    def rows(self, *, task: str) -> list[dict[str, Any]]:
        return [{"id": task}] if task in self.found else []

    def get(self, name: str, /) -> Any:
        return self.found[name]


@pytest.mark.slow
def test_a_curriculum_is_the_same_whatever_the_private_labels_are(bench: Any, tmp_path: Path) -> None:
    """Every document is graded by the true labels and by permuted ones."""
    base, catalogue = bench.task("shop"), bench.catalogue
    set_current(catalogue)
    told, scores = {}, {}
    for name in ("true", "permuted"):
        folder = Path(shutil.copytree(bench.prepare("shop").public.parent, tmp_path / name))
        if name == "permuted":
            answers = pd.read_csv(folder / "private" / "answers.csv")
            answers["returned"] = np.random.default_rng(1).permutation(answers["returned"])
            answers.to_csv(folder / "private" / "answers.csv", index=False)
        graded = {}
        for technique in TECHNIQUES:
            task = bench.task(f"{technique}@shop")
            public, private = (tmp_path / f"{name}-{technique}" / kind for kind in ("public", "private"))
            public.mkdir(parents=True)
            private.mkdir()
            spec = catalogue.get("techniques", technique)
            prepare(folder, public, private, base=base, technique=spec, seed=None)
            answer = import_module(f"mleredux_agent_analyst.answers.{technique}").analyse(read(public, thorough=True))
            document = private.parent / str(task.submission.file)
            document.write_text(spec.document.model_validate(answer).model_dump_json(), encoding="utf-8")
            scored = task.metric.grader.score(GradingInput(document, private, task, {}))
            assert isinstance(scored, Score)
            report = SimpleNamespace(score=scored.value, details=scored.details)
            graded[task.id] = SimpleNamespace(id=task.id, spec=SimpleNamespace(agent="analyst"), report=report)
        told[name] = text("shop", collect(_Runs(graded), "shop"))
        scores[name] = {task: run.report.score for task, run in graded.items()}
    assert scores["true"] != scores["permuted"]  # the labels do count, but not in what is passed on
    assert told["true"] == told["permuted"]
    assert told["true"].count("\n## ") == len(TECHNIQUES)
