"""The taskset in verifiers' own environment; `tests/test_bridges.py` has rollouts, with their scores."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mleredux import Run
from mleredux_testing.pytest_plugin import validator

KINDS = (
    "wine", "synthetic-micro-public-3", "wine+planted-public-3", "leakage@synthetic-micro-public-3",
    "eda+planted-public-3@wine", "breast-cancer-model", "wine-tasting",
)  # fmt: skip
"""Tasks of each kind."""


def validated(home: Path, tasks: Sequence[str], **options: str) -> tuple[dict[str, dict[str, Any]], str]:
    """The rows of what `vf-validate` found, by task, and all that it said."""
    programs = validator("verifiers") / "bin"
    task = {"sandbox": "process", "runs_dir": str(home / "runs"), "data_dir": str(home / "data"), **options}
    words = ["-o", str(home / "out"), "--runtime.type", "subprocess", "--taskset.tasks", json.dumps(tasks)]
    words += [word for name, value in task.items() for word in (f"--taskset.task.{name}", value)]
    ended = subprocess.run(
        [programs / "vf-validate", "mleredux-bridge-verifiers", "--no-rich", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (file,) = (home / "out").glob("*/results.jsonl")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(rows) == len(tasks), rows
    return {row["name"]: row for row in rows}, ended.stdout + ended.stderr


def test_its_own_validator_accepts_the_taskset(tmp_path: Path) -> None:
    rows, told = validated(tmp_path, ["wine"], reward="percentile", invalid="-7")
    row = rows["wine"]
    assert row["valid"] is True, told
    assert row["gold"]["valid"] is True  # the solution has the best score
    assert (row["noop"]["valid"], row["noop"]["reward"]) == (True, -7.0)  # nothing submitted: the reward of the options
    runs = [Run(path) for path in (tmp_path / "runs").glob("2*")]
    assert [run.spec.agent for run in runs] == ["verifiers"] * 2  # one for each check
    assert {str(run.state): run.report and run.report.valid_submission for run in runs} == {
        "cancelled": None,  # the solution is graded apart
        "done": False,  # nothing was submitted, and that was rewarded
    }


def test_the_solution_of_every_kind_of_task_has_the_best_reward_and_nothing_none(tmp_path: Path) -> None:
    rows, told = validated(tmp_path, KINDS)
    assert rows.keys() == set(KINDS)
    for task, row in rows.items():
        assert row["valid"] is row["gold"]["valid"] is row["noop"]["valid"] is True, (task, row, told)
        assert row["noop"]["reward"] == 0, (task, row)
