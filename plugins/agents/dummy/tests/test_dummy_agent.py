"""The dummy agent submits the sample, and says so where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import mleredux_testing as testing
import pytest
from mleredux_rollout import check_rollout


def run_dummy(tmp_path: Path, sample: str | None) -> tuple[subprocess.CompletedProcess[str], Path]:
    task, data, output = (tmp_path / name for name in ("task", "data", "output"))
    for folder in (task, data, output):
        folder.mkdir()
    (data / "sample_submission.csv").write_text("id,target\n1,0\n", encoding="utf-8")
    (task / "task.json").write_text(json.dumps({"sample": sample}), encoding="utf-8")
    env = {
        "PATH": os.environ["PATH"],
        "MLEREDUX_TASK": "a-task",
        "MLEREDUX_TASK_DIR": str(task),
        "MLEREDUX_DATA_DIR": str(data),
        "MLEREDUX_OUTPUT_DIR": str(output),
        "MLEREDUX_SUBMISSION": str(output / "submission.csv"),
    }
    command = [sys.executable, "-m", "mleredux_agent_dummy"]
    return subprocess.run(command, env=env, cwd=output, capture_output=True, text=True), output


def test_it_hands_in_the_sample_with_code_and_a_valid_rollout(tmp_path: Path) -> None:
    ended, output = run_dummy(tmp_path, "sample_submission.csv")
    assert ended.returncode == 0, ended.stderr
    assert (output / "submission.csv").read_bytes() == b"id,target\n1,0\n"
    assert check_rollout(output / "rollout" / "trajectory.json") == []
    again = output / "again.csv"
    sample = tmp_path / "data" / "sample_submission.csv"
    subprocess.run([sys.executable, str(output / "code" / "solution.py"), str(sample.parent), str(again)], check=True)
    assert again.read_bytes() == sample.read_bytes()


@pytest.mark.parametrize(
    ("sample", "why"), [(None, "the task has no sample submission"), ("other.csv", "other.csv is not among the public")]
)
def test_without_a_sample_it_fails_and_says_why(tmp_path: Path, sample: str | None, why: str) -> None:
    ended, output = run_dummy(tmp_path, sample)
    assert ended.returncode == 1
    assert why in ended.stdout
    assert not (output / "submission.csv").exists()
    assert check_rollout(output / "rollout" / "trajectory.json") == []


def test_inside_the_sandbox_it_needs_the_standard_library_alone() -> None:
    code = (
        "import sys; before = set(sys.modules); import mleredux_agent_dummy.__main__; print(*set(sys.modules) - before)"
    )
    loaded = subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True).stdout
    own = {name.partition(".")[0] for name in loaded.split()} - set(sys.stdlib_module_names)
    assert own == {"mleredux_agent_dummy", "mleredux_agentkit"}


@pytest.mark.parametrize("check", testing.checks("dummy"))
def test_conforms(check: Any, tmp_path: Path) -> None:
    check(tmp_path)
