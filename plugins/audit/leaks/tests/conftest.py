"""A clean toy task on disk, into which tests plant leaks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mleredux.models import Metric, Submission, Task
from mleredux_audit_leaks.audit import audit
from mleredux_audit_leaks.report import AuditReport


@dataclass
class Toy:
    """A task whose label depends weakly on one of its measures."""

    folder: Path
    train: pd.DataFrame
    test: pd.DataFrame
    answers: pd.DataFrame
    sample: pd.DataFrame

    @property
    def public(self) -> Path:
        return self.folder / "public"

    @property
    def private(self) -> Path:
        return self.folder / "private"

    @property
    def label(self) -> np.ndarray:
        return self.answers["label"].to_numpy()

    def task(self) -> Task:
        (self.folder / "description.md").write_text("A toy.\n")
        return Task(
            id="planted",
            title="Planted",
            description=self.folder / "description.md",
            submission=Submission(id_columns=("id",), target_columns=("label",)),
            metric=Metric(grader="accuracy"),
            direction="maximize",
        )

    def write(self) -> None:
        self.public.mkdir(parents=True, exist_ok=True)
        self.private.mkdir(parents=True, exist_ok=True)
        self.train.to_csv(self.public / "train.csv", index=False)
        self.test.to_csv(self.public / "test.csv", index=False)
        self.sample.to_csv(self.public / "sample_submission.csv", index=False)
        self.answers.to_csv(self.private / "answers.csv", index=False)

    def audit(self) -> AuditReport:
        self.write()
        return audit(self.task(), self.public, self.private)


def make_toy(folder: Path, seed: int = 0, *, rows: int = 400, classes: int = 3, regression: bool = False) -> Toy:
    rng = np.random.default_rng(seed)
    measure = rng.normal(size=rows)
    label = rng.normal(size=rows).round(4) if regression else rng.integers(classes, size=rows)
    frame = pd.DataFrame(
        {
            "id": rng.permutation(rows * 10)[:rows],
            "measure": (measure + 0.7 * label).round(3),
            "colour": rng.choice(["red", "green", "blue"], rows),
            "town": rng.choice([f"town{number}" for number in range(60)], rows),
            "label": label,
        }
    )
    test, train = frame[: rows // 2].reset_index(drop=True), frame[rows // 2 :].reset_index(drop=True)
    sample = test[["id"]].assign(label=0)
    return Toy(folder, train, test.drop(columns="label"), test[["id", "label"]], sample)


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return make_toy(tmp_path)
