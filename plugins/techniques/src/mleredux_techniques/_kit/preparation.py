"""Prepare a technique task from the prepared files of its base: the public files, and the truth."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from mleredux.plugin.task import Task

from mleredux_techniques._kit.dataset import Dataset, save
from mleredux_techniques._kit.discovery import Source, discover
from mleredux_techniques._kit.instances import plant
from mleredux_techniques._kit.sample import sampled
from mleredux_techniques._kit.tables import ENDINGS, MAX_ROWS

if TYPE_CHECKING:
    from mleredux_techniques._kit.spec import TechniqueSpec

QUESTION_FILE = "question.json"
TRUTH_FILE = "truth.json"
_COPIED_BYTES = 1 << 20


def prepare(raw: Path, public: Path, private: Path, *, base: Task, technique: TechniqueSpec, seed: int | None) -> None:
    """Write the public and private files of a technique task.

    Args:
        raw: The base's prepared folder, with `public` and `private`.
        public: Receives the base's public files, or the planted tables, and `question.json`.
        private: Receives the truth, and the (sampled) data with the labels of the test rows.
        base: The competition.
        technique: The technique.
        seed: Seed of the planted instance; None for the unchanged data.

    Raises:
        NotApplicable: The question does not apply to the data; the message says why.
    """
    dataset, source = discover(base, raw)
    if seed is not None:
        dataset, source = plant(dataset, technique, seed), Source("train.csv", "test.csv")
    truth = technique.truth(dataset)
    if seed is None:
        _share(raw / "public", public)
    else:
        _write_tables(dataset, public)
    _write_question(dataset, source, public / QUESTION_FILE, technique.id)
    (private / TRUTH_FILE).write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    save(sampled(dataset), private)


def _write_question(dataset: Dataset, source: Source, path: Path, technique: str) -> None:
    question = {
        "technique": technique,
        "train": source.train,
        "test": source.test,
        "target": dataset.target,
        "targets": dataset.targets,
        "ids": dataset.ids,
        "features": dataset.features,
        "rows_at_most": MAX_ROWS,
    }
    path.write_text(json.dumps(question, indent=1) + "\n", encoding="utf-8")


def _write_tables(dataset: Dataset, public: Path) -> None:
    """Write the planted tables; booleans are written as True and False."""
    booleans = [name for name, kind in dataset.kinds.items() if kind == "boolean"]
    for name, frame in (("train", dataset.train), ("test", dataset.test.drop(columns=list(dataset.targets)))):
        told = frame.assign(**{column: frame[column].map({1.0: "True", 0.0: "False"}) for column in booleans})
        told.to_csv(public / f"{name}.csv", index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)


def _share(source: Path, target: Path) -> None:
    """Provide the base's public files: tables and small files as copies, other large files as links if possible."""

    def share(this: str, there: str) -> str:
        if os.path.getsize(this) > _COPIED_BYTES and not this.lower().endswith(ENDINGS):  # noqa: PTH202
            with contextlib.suppress(OSError):
                os.link(this, there)
                return there
        return shutil.copyfile(this, there)

    shutil.copytree(source, target, copy_function=share, dirs_exist_ok=True, symlinks=True)
