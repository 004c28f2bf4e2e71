"""Micro tasks: equal bytes everywhere, any of 2^31 seeds, a structure that is as declared, and difficulty as a dial."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import correlation
from typing import Any

import pytest
from mleredux._core.data import Prepared
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.stages.grade import grade
from mleredux.plugin.command import current
from mleredux_techniques._kit.planting import micro

Preparer = Callable[[str], Prepared]
DIGESTS = {
    "synthetic-micro-public-0": "2bcccc7da1053435",
    "synthetic-micro-easy-public-1": "bbeeb1091a437284",
    "synthetic-micro-hard-public-2": "2bf84cbb5bd107ad",
    "synthetic-micro-public-2147483647": "5ebbe01d079aa0c3",
}
WITHOUT_LIBRARIES = """\
import sys, types
class Missing:
    def find_spec(self, name, path=None, target=None):
        assert name.partition(".")[0] not in {"pandas", "scipy", "sklearn"}, name
sys.meta_path.insert(0, Missing())
"""


def generated(name: str, folder: Path) -> Path:
    """The files of a task, made without core."""
    task = micro.micro_competition(name)
    assert task is not None and task.prepare is not None
    for part in ("public", "private"):
        (folder / part).mkdir(parents=True)
    task.prepare(folder, folder / "public", folder / "private")
    return folder


def digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()[:16]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", DIGESTS)
def test_bytes_are_those_of_every_platform(name: str, tmp_path: Path) -> None:
    assert digest(generated(name, tmp_path)) == DIGESTS[name]


def test_no_library_takes_part(tmp_path: Path) -> None:
    name = next(iter(DIGESTS))
    call = (
        f"import pathlib, test_techniques_micro as t; print(t.digest(t.generated({name!r}, pathlib.Path(sys.argv[1]))))"
    )
    program = "import numpy, pytest, mleredux_techniques._kit.planting.micro\n" + WITHOUT_LIBRARIES + call
    command = [sys.executable, "-W", "ignore", "-c", program, str(tmp_path)]
    ended = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    assert ended.stdout.strip() == DIGESTS[name], ended.stderr


@pytest.mark.parametrize("number", [0, 7, 2**31 - 1])
def test_all_seeds_are_addressable(number: int) -> None:
    for kind in ("synthetic", "synthetic-micro", "synthetic-micro-hard-public"):
        assert current().task(f"{kind}-{number}").id == f"{kind}-{number}"
    assert micro.micro_competition(f"synthetic-micro-{2**31}") is None
    assert micro.micro_competition("synthetic-micro-007") is None


def test_a_seed_takes_a_fraction_of_a_second(tmp_path: Path) -> None:
    began = time.process_time()
    for number in range(20):
        generated(f"synthetic-micro-hard-public-{number}", tmp_path / str(number))
    assert time.process_time() - began < 20 * 0.3


def test_the_structure_is_as_declared(tmp_path: Path) -> None:
    """The leak reveals the target in the training table alone."""
    leaks, metrics = 0, set()
    for number in range(12):
        name = f"synthetic-micro-hard-public-{number}"
        folder, task = generated(name, tmp_path / name), micro.micro_competition(name)
        assert task is not None
        metrics.add(task.metric.id)
        facts = json.loads((folder / "private" / "truth.json").read_text())["columns"]
        train, test = rows(folder / "public" / "train.csv"), rows(folder / "public" / "test.csv")
        answers = {row["id"]: row["target"] for row in rows(folder / "private" / "answers.csv")}
        assert (len(train), len(test), len({row["id"] for row in train + test})) == (100, 100, 200)
        assert set(facts) == set(test[0]) - {"id"} and "target" not in test[0]
        leak = next(column for column, fact in facts.items() if fact["role"] == "leak")
        known = correlation([float(row[leak]) for row in train], [float(row["target"]) for row in train])
        hidden = correlation([float(row[leak]) for row in test], [float(answers[row["id"]]) for row in test])
        leaks += known > 0.9 and abs(hidden) < 0.4
        assert sum(row[column] == "" for row in train + test for column in facts) > 5
    assert leaks == 12 and metrics == {"rmse", "roc-auc", "accuracy"}


def test_who_knows_the_structure_beats_the_board_and_a_constant_nobody(prepared: Preparer, bench: Any) -> None:
    set_current(bench.catalogue)
    for level in micro.LEVELS:
        for number in range(4):
            name = f"synthetic-micro-{level + '-' if level != 'medium' else ''}public-{number}"
            made, task = prepared(name), bench.task(name)
            best, ceiling, sample = (
                grade(task, path, made.private, bench.catalogue)
                for path in (
                    made.private / "answers.csv",
                    made.private / "ceiling.csv",
                    made.public / task.submission.sample,
                )
            )
            perfect = 0.0 if task.direction == "minimize" else 1.0
            assert math.isclose(best.score, perfect) and best.percentile == 100.0
            assert ceiling.percentile >= 80 and sample.percentile <= 40, name


def test_seeds_differ_and_secret_ones_are_of_this_installation(tmp_path: Path) -> None:
    names = [f"synthetic-micro-{kind}{number}" for number in (1, 2) for kind in ("", "easy-", "hard-", "public-")]
    assert len({digest(generated(name, tmp_path / name)) for name in names}) == len(names)
