"""Preparing a technique task from the prepared files of its base: what the agent sees, and the truth."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

from mleredux.plugin.task import Task

from mleredux_techniques import facts
from mleredux_techniques.dataset import Dataset, save
from mleredux_techniques.discovery import Source, discover
from mleredux_techniques.planting import plant
from mleredux_techniques.sampling import sampled
from mleredux_techniques.tables import ENDINGS, MAX_ROWS

QUESTION_FILE = "question.json"
TRUTH_FILE = "truth.json"
_COPIED_BYTES = 1 << 20


def prepare(raw: Path, public: Path, private: Path, *, base: Task, technique: str, seed: int | None) -> None:
    """Write the public and private files of a technique task.

    Args:
        raw: The base's prepared folder, with `public` and `private`.
        public: Gets the base's public files, or the planted tables, and `question.json`.
        private: Gets the truth, and the (sampled) data with the labels of the test rows.
        base: The competition.
        technique: Which question.
        seed: Of the planted instance; None for the data as they are.

    Raises:
        NotApplicable: The question makes no sense of the data; says why.
    """
    dataset, source = discover(base, raw)
    if seed is None:
        truth = facts.module(technique).truth(dataset)
        _share(raw / "public", public)
    else:
        dataset = plant(dataset, technique, seed)
        truth = facts.module(technique).truth(dataset)
        source = Source("train.csv", "test.csv")
        _write_tables(dataset, public)
    if technique == "leakage":
        dataset = replace(dataset, planted={**dataset.planted, "leaks": truth["leaks"]})
    _write_question(dataset, source, public / QUESTION_FILE, technique)
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
    """The planted tables; booleans are written as True and False."""
    booleans = [name for name, kind in dataset.kinds.items() if kind == "boolean"]
    for name, frame in (("train", dataset.train), ("test", dataset.test.drop(columns=list(dataset.targets)))):
        told = frame.assign(**{column: frame[column].map({1.0: "True", 0.0: "False"}) for column in booleans})
        told.to_csv(public / f"{name}.csv", index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)


def _share(source: Path, target: Path) -> None:
    """The base's public files: tables and small files as copies, large others linked where the disk allows it."""

    def share(this: str, there: str) -> str:
        if os.path.getsize(this) > _COPIED_BYTES and not this.lower().endswith(ENDINGS):  # noqa: PTH202
            with contextlib.suppress(OSError):
                os.link(this, there)
                return there
        return shutil.copyfile(this, there)

    shutil.copytree(source, target, copy_function=share, dirs_exist_ok=True, symlinks=True)
