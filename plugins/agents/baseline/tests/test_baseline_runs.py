"""The baseline as a process: good on every starter competition, in time, with a valid submission whatever happens."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from mleredux._core.data.medals import medals
from mleredux._core.plugins import current
from mleredux._core.submissions.endpoint import ValidationEndpoint
from mleredux._core.submissions.schema import read_schema, write_schema
from mleredux.models import GradingInput, Score, Task, Verdict
from mleredux_rollout import check_rollout, read_rollout, step_extra

FEW = {"MLEREDUX_OPTIONS": json.dumps({"candidates": 4, "folds": 3})}
"""Enough for a medal, at a third of the work."""
STARTER = sorted(entry.id for entry in current().entries("tasks").values() if "starter" in entry.ref.summary["sets"])


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """`data(task)` gives a folder with the task's public and private files."""
    made: dict[str, Path] = {}

    def prepare(task: Task) -> Path:
        if task.id not in made:
            folder = made[task.id] = tmp_path_factory.mktemp(task.id)
            for name in ("raw", "public", "private"):
                (folder / name).mkdir()
            assert task.fetch and task.prepare
            task.fetch(folder / "raw")
            task.prepare(folder / "raw", folder / "public", folder / "private")
        return made[task.id]

    return prepare


def facts_of(task: Task) -> dict[str, Any]:
    return {
        "file": task.submission.file,
        "sample": task.submission.sample,
        "id_columns": task.submission.id_columns,
        "target_columns": task.submission.target_columns,
        "metric": task.metric.id,
        "direction": task.direction,
    }


def score_of(task: Task, submission: Path, private: Path) -> float:
    result = current().grader(task.metric.id).score(GradingInput(submission, private, task, task.metric.options))
    return result.value if isinstance(result, Score) else float(result)


@pytest.mark.slow
@pytest.mark.parametrize("name", STARTER)
def test_it_earns_a_medal_and_beats_the_median(name: str, data: Any, start_baseline: Any) -> None:
    task = current().task(name)
    folder = data(task)
    agent = start_baseline(folder / "public", facts_of(task), description=task.describe(), **FEW)
    assert agent.finish() == 0, "\n".join(agent.log)
    score = score_of(task, agent.submission, folder / "private")
    assert task.thresholds is not None
    earned = medals(score, task.thresholds, task.direction)
    assert earned.above_median, f"{score} does not beat the median {task.thresholds.median}"
    assert earned.any_medal, f"{score} earns no medal of {task.thresholds}"
    check_traces(agent.output)


def check_traces(output: Path) -> None:
    path = output / "rollout" / "trajectory.json"
    assert check_rollout(path) == []
    extras = [step_extra(step) for step in read_rollout(path).steps if step.source == "agent"]
    tried = [extra for extra in extras if extra.stage == "draft" and extra.validation_metric is not None]
    assert len(tried) >= 3
    assert all(extra.metric_name and extra.is_buggy is False and extra.seconds is not None for extra in tried)
    versions = [extra.submission_version for extra in extras if extra.submission_version]
    assert versions == sorted(versions) and versions[0] == 1 and len(versions) >= 2
    assert "submitted version" in (output / "logs" / "baseline.log").read_text(encoding="utf-8")


@pytest.mark.slow
def test_its_code_makes_the_submission_again(data: Any, start_baseline: Any, tmp_path: Path) -> None:
    task = current().task("wine")
    public = data(task) / "public"
    agent = start_baseline(public, facts_of(task), **FEW)
    assert agent.finish() == 0, "\n".join(agent.log)
    again = tmp_path / "again.csv"
    script = agent.output / "code" / "solution.py"
    subprocess.run([sys.executable, "-I", str(script), str(public), str(again)], check=True, capture_output=True)
    pd.testing.assert_frame_equal(pd.read_csv(again), pd.read_csv(agent.submission), rtol=1e-6)


@pytest.mark.parametrize("seconds", [2, 5])
def test_a_deadline_of_seconds_still_leaves_a_valid_submission(seconds: int, data: Any, start_baseline: Any) -> None:
    task = current().task("digits")
    folder = data(task)
    started = time.time()
    agent = start_baseline(folder / "public", facts_of(task), time_limit=seconds)
    assert agent.finish() == 0, "\n".join(agent.log)
    assert time.time() - started < seconds + 10
    assert score_of(task, agent.submission, folder / "private") >= 0.09
    assert check_rollout(agent.output / "rollout" / "trajectory.json") == []


def test_sigterm_ends_it_at_once_and_what_is_there_stays(data: Any, start_baseline: Any) -> None:
    task = current().task("digits")
    folder = data(task)
    agent = start_baseline(folder / "public", facts_of(task))
    wait_for(lambda: agent.submission.is_file())
    agent.process.send_signal(signal.SIGTERM)
    asked = time.time()
    assert agent.finish() == 0, "\n".join(agent.log)
    assert time.time() - asked < 10
    assert "stopped by SIGTERM" in agent.log[-1]
    assert score_of(task, agent.submission, folder / "private") >= 0.09
    assert agent.rollout["steps"][-1]["message"] == "Stopped: stopped by SIGTERM."


def wait_for(condition: Any, seconds: float = 60) -> None:
    end = time.time() + seconds
    while not condition():
        assert time.time() < end, "it did not happen in time"
        time.sleep(0.02)


def test_it_asks_once_whether_the_submission_is_well_formed(data: Any, start_baseline: Any, tmp_path: Path) -> None:
    task = current().task("wine")
    public = data(task) / "public"
    verdicts: list[Verdict] = []
    write_schema(task, public, tmp_path / "schema")
    schema = read_schema(tmp_path / "schema")
    endpoint = ValidationEndpoint("a-run", schema, tmp_path / "output", verdicts.append, lambda: 60.0)
    endpoint.start()
    try:
        agent = start_baseline(
            public, facts_of(task), MLEREDUX_VALIDATE_URL=endpoint.url,
            MLEREDUX_OPTIONS=json.dumps({"search_seconds": 1, "folds": 2}),
        )  # fmt: skip
        assert agent.finish() == 0, "\n".join(agent.log)
    finally:
        endpoint.stop()
    assert [(verdict.valid, verdict.message) for verdict in verdicts] == [(True, verdicts[0].message)]
    assert agent.rollout["steps"][-1]["observation"]["results"][0]["content"] == verdicts[0].message


def test_a_task_that_it_can_not_learn_from_gets_the_sample(tmp_path: Path, start_baseline: Any) -> None:
    public = tmp_path / "public"
    public.mkdir()
    (public / "sample.csv").write_text("id,caption\n1,a dog\n", encoding="utf-8")
    agent = start_baseline(public, {"sample": "sample.csv"})
    assert agent.finish() == 0, "\n".join(agent.log)
    assert agent.submission.read_text(encoding="utf-8") == "id,caption\n1,a dog\n"
    assert any("does not support this task: there is no training table" in line for line in agent.log)


def test_a_task_without_a_sample_is_a_failure_that_says_why(tmp_path: Path, start_baseline: Any) -> None:
    (tmp_path / "public").mkdir()
    agent = start_baseline(tmp_path / "public", {})
    assert agent.finish() == 1
    assert any("no sample submission" in line for line in agent.log)
    assert check_rollout(agent.output / "rollout" / "trajectory.json") == []


def test_inside_the_sandbox_it_never_imports_mleredux() -> None:
    code = "import sys, mleredux_agent_baseline.__main__, mleredux_agent_baseline.work; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not [name for name in loaded if name == "mleredux" or name.startswith("mleredux.")]
