"""Every registered grader's task in miniature, and a desk that grades tables of it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mleredux_graders
import numpy as np
import pandas as pd
from mleredux.errors import InvalidSubmission
from mleredux.models import Grader, GradingInput, Metric, Submission, Task
from mleredux_tables.definition import UNEXPECTED

ROWS = 24


@dataclass(frozen=True)
class Case:
    """A task in miniature: its answers, and the submission that is perfect.

    Attributes:
        answers: Made from a random generator; the column `id` names rows.
        perfect: Made from the answers; the answers themselves where None.
        tolerance: How near to perfect a perfect submission comes (the arccosine is steep at 1).
    """

    targets: tuple[str, ...]
    answers: Callable[[np.random.Generator], pd.DataFrame]
    perfect: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    ids: tuple[str, ...] = ("id",)
    tolerance: float = 1e-9


def table(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"id": [f"r{number:03d}" for number in range(ROWS)], **columns})


def labels(rng: np.random.Generator) -> pd.DataFrame:
    return table(y=rng.permutation(np.arange(ROWS) % 3))


def words(rng: np.random.Generator) -> pd.DataFrame:
    return table(y=[" ".join(rng.choice(list("abcdef"), rng.integers(1, 4), replace=False)) for _ in range(ROWS)])


def binary(rng: np.random.Generator) -> pd.DataFrame:
    return table(y=rng.permutation(np.arange(ROWS) % 2))


def one_hot(rng: np.random.Generator) -> pd.DataFrame:
    return table(**{f"c{k}": column for k, column in enumerate(np.eye(3, dtype=int)[rng.permutation(ROWS) % 3].T)})


def values(rng: np.random.Generator) -> pd.DataFrame:
    return table(y=rng.normal(size=ROWS) * 100, z=rng.exponential(size=ROWS))


def positive(rng: np.random.Generator) -> pd.DataFrame:
    return table(y=rng.exponential(size=ROWS))


def grouped(rng: np.random.Generator) -> pd.DataFrame:
    return table(y=rng.integers(1, 5, ROWS).astype(float), group=np.arange(ROWS) // 6)


def sentences(rng: np.random.Generator) -> pd.DataFrame:
    return table(y=[" ".join(rng.choice(["Über", "the", "fox", "naïve"], rng.integers(1, 6))) for _ in range(ROWS)])


def votes(rng: np.random.Generator) -> pd.DataFrame:
    return table(**{name: rng.integers(1, 9, ROWS) for name in ("a", "b", "c")})


def shares(answers: pd.DataFrame) -> pd.DataFrame:
    counts = answers[["a", "b", "c"]]
    return answers[["id"]].join(counts.div(counts.sum(axis=1), axis=0))


def identities(rng: np.random.Generator) -> pd.DataFrame:
    """Both classes are among those who are mentioned and among those who are not."""
    first = np.arange(ROWS) < 8
    mentioned = np.where(np.arange(ROWS) < 4, 1.0, 0.0)
    return table(
        y=np.where(first, np.arange(ROWS) % 2, rng.permutation(np.arange(ROWS) % 2)),
        one=np.where(first, mentioned, rng.random(ROWS)),
        other=np.where(first, mentioned, rng.random(ROWS)),
    )


def studies(rng: np.random.Generator) -> pd.DataFrame:
    return table(
        y=rng.permutation(np.arange(ROWS) % 2), study=np.arange(ROWS) // 4, label=[f"C{n % 4}" for n in range(ROWS)]
    )


def directions(rng: np.random.Generator) -> pd.DataFrame:
    return table(azimuth=rng.uniform(0, 6.28, ROWS), zenith=rng.uniform(0, 3.14, ROWS))


def tracks(rng: np.random.Generator) -> pd.DataFrame:
    return table(lat=rng.uniform(-80, 80, ROWS), lng=rng.uniform(-179, 179, ROWS), track=np.arange(ROWS) // 8)


def visits(rng: np.random.Generator) -> pd.DataFrame:
    return table(fvc=rng.integers(1000, 4000, ROWS), sigma=70).assign(id=[f"p{n // 6}_{n % 6}" for n in range(ROWS)])


def masks(rng: np.random.Generator) -> pd.DataFrame:
    def mask() -> str:
        places = np.sort(rng.choice(np.arange(1, 60), size=4, replace=False))
        return f"{places[0]} {places[1] - places[0]} {places[2]} {places[3] - places[2]}"

    return table(y=[mask() if n % 5 else "" for n in range(ROWS)], height=8, width=8).assign(
        id=[f"scan{n // 6}_slice_{n % 6:04d}" for n in range(ROWS)]
    )


def boxes_3d(rng: np.random.Generator) -> pd.DataFrame:
    def box(kind: str) -> str:
        numbers = [*rng.uniform(-50, 50, 3), *rng.uniform(1, 5, 3), rng.uniform(-3, 3)]
        return " ".join(["1.0", *(f"{number:.3f}" for number in numbers), kind])

    return table(y=[" ".join(box(kind) for kind in rng.choice(["car", "bus"], 2)) for _ in range(ROWS)])


def boxes_2d(rng: np.random.Generator) -> pd.DataFrame:
    def cell(row: int) -> str:
        x, y = rng.integers(0, 50, 2)
        return f"opacity 1 {x} {y} {x + 30} {y + 40}" if row % 2 else "none 1 0 0 1 1"

    return table(y=[cell(row) for row in range(ROWS)])


def pages(rng: np.random.Generator) -> pd.DataFrame:
    def box(label: str) -> str:
        return " ".join([label, *map(str, rng.integers(0, 90, 2)), *map(str, rng.integers(5, 40, 2))])

    return table(y=[" ".join(box(label) for label in rng.choice(["U+304B", "U+306F"], 3)) for _ in range(ROWS)])


def centres(answers: pd.DataFrame) -> pd.DataFrame:
    def points(cell: str) -> str:
        pieces = cell.split()
        groups = [pieces[start : start + 5] for start in range(0, len(pieces), 5)]
        return " ".join(f"{g[0]} {int(g[1]) + int(g[3]) / 2} {int(g[2]) + int(g[4]) / 2}" for g in groups)

    return answers.assign(y=[points(cell) for cell in answers["y"]])


def findings(rng: np.random.Generator) -> pd.DataFrame:
    low = rng.integers(0, 500, (ROWS, 2))
    high = low + rng.integers(10, 300, (ROWS, 2))
    corners = dict(zip(["x_min", "y_min", "x_max", "y_max"], np.hstack([low, high]).T, strict=True))
    return table(class_id=rng.integers(0, 3, ROWS), **corners)


def found(answers: pd.DataFrame) -> pd.DataFrame:
    columns = answers[["class_id", "x_min", "y_min", "x_max", "y_max"]].to_numpy()
    cells = [f"{row[0]} 0.9 {' '.join(map(str, row[1:]))}" for row in columns]
    return answers[["id"]].assign(y=cells)


def full_masks(rng: np.random.Generator) -> pd.DataFrame:
    return masks(rng).assign(y=lambda t: t["y"].replace("", "1 1"))


def orders(rng: np.random.Generator) -> pd.DataFrame:
    return table(y=[" ".join(rng.permutation(list("abcdef"))) for _ in range(ROWS)])


BOX = {"height": "height", "width": "width"}
CASES = {
    "accuracy": Case(("y",), labels),
    "average-precision": Case(("y",), binary),
    "average-precision-boxes": Case(("y",), boxes_2d),
    "bias-roc-auc": Case(("y",), identities, options={"identities": ["one", "other"]}),
    "coco-map": Case(("y",), findings, found),
    "dice": Case(("y",), masks, options={**BOX, "missing": "blank"}),
    "dice-hausdorff": Case(("y",), masks, options={**BOX, "missing": "blank"}),
    "exact-match": Case(("y",), sentences),
    "haversine-percentiles": Case(("lat", "lng"), tracks, options={"group": "track"}),
    "kendall-tau-pooled": Case(("y",), orders),
    "kl-divergence": Case(("a", "b", "c"), votes, shares),
    "laplace-log-likelihood": Case(("fvc", "sigma"), visits),
    "levenshtein": Case(("y",), sentences),
    "located-f1": Case(("y",), pages, centres),
    "lwlrap": Case(("c0", "c1", "c2"), one_hot),
    "map-boxes-3d": Case(("y",), boxes_3d),
    "mask-fbeta": Case(("y",), full_masks, options=BOX),
    "mask-precision": Case(("y",), masks, options={**BOX, "missing": "blank"}),
    "mean-angular-error": Case(("azimuth", "zenith"), directions, tolerance=1e-7),
    "probabilistic-f1": Case(("y",), binary),
    "weighted-log-loss": Case(
        ("y",), studies, options={"group": "study", "label": "label", "weights": {"C0": [7, 14]}}
    ),
    "weighted-roc-auc": Case(("y",), binary),
    "word-jaccard": Case(("y",), sentences),
    "balanced-accuracy": Case(("y",), labels),
    "brier": Case(("c0", "c1", "c2"), one_hot),
    "cohen-kappa": Case(("y",), labels),
    "error-rate": Case(("y",), labels),
    "f1": Case(("y",), labels),
    "f1-multilabel": Case(("y",), words),
    "group-log-mae": Case(("y",), grouped, options={"group": "group"}),
    "log-loss": Case(("c0", "c1", "c2"), one_hot),
    "mae": Case(("y", "z"), values),
    "map-at-k": Case(("y",), words, options={"k": 4}),
    "mape": Case(("y",), positive),
    "matthews-correlation": Case(("y",), labels),
    "mcrmse": Case(("y", "z"), values, options={"scored": ["y"]}),
    "median-absolute-error": Case(("y", "z"), values),
    "mrr": Case(("y",), words),
    "mse": Case(("y", "z"), values),
    "ndcg-at-k": Case(("y",), grouped, options={"group": "group", "k": 4}),
    "pearson": Case(("y", "z"), values),
    "precision": Case(("y",), labels),
    "quadratic-weighted-kappa": Case(("y",), labels),
    "r2": Case(("y", "z"), values),
    "recall": Case(("y",), labels),
    "rmse": Case(("y", "z"), values),
    "rmsle": Case(("y",), positive),
    "roc-auc": Case(("y",), binary),
    "spearman": Case(("y", "z"), values),
}

WITHOUT_TABLE = {"natural-questions-f1"}
"""Graders whose answers are no table; they have tests of their own."""


def load(name: str) -> Grader:
    module, _, attribute = mleredux_graders.GRADERS[name].partition(":")
    grader: Grader = getattr(importlib.import_module(f"mleredux_graders.{module}"), attribute or "GRADER")
    return grader


class Desk:
    """Grades tables of one case, written as files."""

    def __init__(self, folder: Path, name: str, seed: int, **options: Any) -> None:
        self.case, self.folder, self.grader = CASES[name], folder, load(name)
        self.answers = self.case.answers(np.random.default_rng(seed))
        self.answers.to_csv(folder / "answers.csv", index=False)
        self.perfect = self.answers if self.case.perfect is None else self.case.perfect(self.answers)
        self.task = Task(
            id="case",
            title="Case",
            description=folder / "description.md",
            direction=self.grader.direction,
            submission=Submission(id_columns=self.case.ids, target_columns=self.case.targets),
            metric=Metric(grader=name, options={**self.case.options, **options}),
        )

    def grade(self, frame: pd.DataFrame) -> float:
        frame.to_csv(self.folder / "submission.csv", index=False)
        return self.grade_file(self.folder / "submission.csv")

    def grade_file(self, path: Path) -> float:
        score = self.grader.score(GradingInput(path, self.folder, self.task, self.task.metric.options))
        return score if isinstance(score, float) else score.value


def assert_sentence(refusal: InvalidSubmission) -> None:
    assert refusal.message[0].isupper() and refusal.message.endswith("."), refusal.message
    assert "\n" not in refusal.message and len(refusal.message) < 400, refusal.message
    assert UNEXPECTED not in refusal.message, f"a check is missing: {refusal.message}"
