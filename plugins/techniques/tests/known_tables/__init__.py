"""Small tables, each with one known truth, and for each a right and a wrong judgement.

One module per technique; its functions take a random generator and return a `Known`. Counts in documents come from the
tables, so that only the judgement differs.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mleredux.plugin.task import Competition, Metric, Submission
from mleredux_techniques._kit.data.discovery import discover
from mleredux_techniques._kit.data.splits import sampled
from mleredux_techniques.kit import Dataset, Instance, combined
from technique_documents import TECHNIQUES, read

Array = np.ndarray[Any, Any]
Rng = np.random.Generator
ROWS, TEST = 2_400, 0.3
NAMES = (
    "leakage", "cv", "missing", "encoding", "scaling", "imbalance", "metric", "calibration", "eda", "features", "shift"
)  # fmt: skip


@dataclass(frozen=True)
class Known:
    """A table of known truth.

    Attributes:
        rows: Training and test rows with the target `y`.
        test: Which rows are the test.
        right, wrong: What documents claim, as their technique's module understands it.
        fields: Of the declaration of the competition.
        executed: Whether data can't judge the wrong claim, only its effect.
        files: Further public files.
        options: Of the metric.
    """

    rows: pd.DataFrame
    test: Array
    right: Any
    wrong: Any
    metric: str = "roc-auc"
    fields: dict[str, Any] = field(default_factory=dict)
    executed: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


def kinds(technique: str) -> dict[str, Callable[[Rng], Known]]:
    """The tables of a technique, by name."""
    found: dict[str, Callable[[Rng], Known]] = import_module(f"{__name__}.{technique}").KINDS
    return found


def made(technique: str, kind: str, seed: int = 0) -> Known:
    """One table; equal seeds give equal tables."""
    return kinds(technique)[kind](np.random.default_rng([zlib.crc32(kind.encode()), seed]))


def dataset_of(known: Known, folder: Path) -> tuple[Dataset, Competition]:
    """Read a table as the preparation of a technique task does, from files."""
    public, private = folder / "public", folder / "private"
    public.mkdir(parents=True)
    private.mkdir()
    rows = known.rows if "id" in known.rows else known.rows.assign(id=np.arange(len(known.rows)))
    train, test = rows[~known.test], rows[known.test]
    for name, content in known.files.items():
        (public / name).write_bytes(content)
    train.to_csv(public / "train.csv", index=False)
    test.drop(columns="y").to_csv(public / "test.csv", index=False)
    test[["id", "y"]].to_csv(private / "answers.csv", index=False)
    task = Competition(
        id="known",
        title="A table of known truth",
        description=folder / "description.md",
        submission=Submission(sample=None, id_columns=("id",), target_columns=("y",)),
        metric=Metric(grader=known.metric, options=known.options),
        direction="minimize" if known.metric in ("rmse", "mae", "rmsle", "mape", "log-loss", "brier") else "maximize",
        **known.fields,
    )
    return discover(task, folder)[0], task


def facts_of(technique: str, known: Known, folder: Path, tables: str = __name__) -> tuple[float, float]:
    """The facts of the right and of the wrong document; arguments as those of `scores_of`."""
    dataset, task = dataset_of(known, folder)
    truth = truth_of(technique, dataset, task)
    return tuple(  # type: ignore[return-value]
        TECHNIQUES[technique].assess(read(technique, document), truth).score
        for document in _documents(technique, known, truth, dataset, tables)
    )


def scores_of(technique: str, known: Known, folder: Path, tables: str = __name__) -> tuple[float, float]:
    """The scores of the right and of the wrong document, with their efficacy.

    Args:
        tables: The package whose documents state the claims.
    """
    dataset, task = dataset_of(known, folder)
    truth = truth_of(technique, dataset, task)
    found = []
    instance = Instance(sampled(dataset), truth, task)
    for content in _documents(technique, known, truth, dataset, tables):
        document = read(technique, content)
        efficacy = TECHNIQUES[technique].measure(document, instance).score
        told = TECHNIQUES[technique].assess(document, truth)
        found.append(combined(told.score, efficacy, decided=told.decided))
    return found[0], found[1]


def truth_of(technique: str, dataset: Dataset, task: Competition) -> dict[str, Any]:
    """The truth as the preparation of a task writes it."""
    made = TECHNIQUES[technique].truth(dataset)
    if (reference := TECHNIQUES[technique].reference) is not None:
        made |= reference(Instance(dataset, made, task))
    told: dict[str, Any] = json.loads(json.dumps(made))
    return told


def _documents(
    technique: str, known: Known, truth: dict[str, Any], dataset: Dataset, tables: str
) -> list[dict[str, Any]]:
    document = import_module(f"{tables}.{technique}").document
    return [document(claims, truth, dataset) for claims in (known.right, known.wrong)]


def random_test(rng: Rng, rows: int = ROWS) -> Array:
    """A random test."""
    test = np.zeros(rows, dtype=bool)
    test[rng.permutation(rows)[: round(TEST * rows)]] = True
    return test


def base(rng: Rng, problem: str = "binary", rows: int = ROWS) -> pd.DataFrame:
    """Four honest columns and a target that they tell in part."""
    x = rng.normal(size=(rows, 4))
    level = x[:, 0] + 0.7 * x[:, 1] + rng.normal(0, 1.2, rows)
    y: Array = level
    if problem == "binary":
        y = (level > 0.3).astype(int)
    elif problem == "multiclass":
        y = np.array(["low", "mid", "high", "top"], dtype=object)[np.digitize(level, [-1, 0.2, 1.3])]
    columns = {f"f{k}": np.round(x[:, k], 4) for k in range(4)}
    return pd.DataFrame({"id": rng.permutation(rows), **columns, "y": y})
