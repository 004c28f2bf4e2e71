"""The taskset in verifiers' own environment; `tests/test_bridges.py` has rollouts, with their scores."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from mleredux import Run
from mleredux_testing.pytest_plugin import validator


def validated(home: Path, **options: str) -> tuple[dict[str, Any], str]:
    """The only row of what `vf-validate` found, and all that it said."""
    programs = validator("verifiers") / "bin"
    task = {"sandbox": "process", "runs_dir": str(home / "runs"), "data_dir": str(home / "data"), **options}
    words = ["-o", str(home / "out"), "--runtime.type", "subprocess", "--taskset.tasks", '["wine"]']
    words += [word for name, value in task.items() for word in (f"--taskset.task.{name}", value)]
    ended = subprocess.run(
        [programs / "vf-validate", "mleredux-bridge-verifiers", "--no-rich", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (file,) = (home / "out").glob("*/results.jsonl")
    row: dict[str, Any] = json.loads(file.read_text())
    return row, ended.stdout + ended.stderr


def test_its_own_validator_accepts_the_taskset(tmp_path: Path) -> None:
    row, told = validated(tmp_path, reward="percentile", invalid="-7")
    assert row["valid"] is True, told
    assert row["gold"]["valid"] is True  # the sample submission is graded as valid
    assert (row["noop"]["valid"], row["noop"]["reward"]) == (True, -7.0)  # nothing submitted: the reward of the options
    runs = [Run(path) for path in (tmp_path / "runs").glob("2*")]
    assert [run.spec.agent for run in runs] == ["verifiers"] * 2  # one for each check
    assert {str(run.state): run.report and run.report.valid_submission for run in runs} == {
        "cancelled": None,  # the sample is graded apart
        "done": False,  # nothing was submitted, and that was rewarded
    }
