"""Runs as they lie on disk, for tests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MEDALS = ("gold", "silver", "bronze")


def write_run(
    folder: Path,
    task: str,
    agent: str,
    seed: int,
    *,
    medal: str | None = None,
    score: float | None = None,
    state: str = "done",
    cause: str | None = None,
    limits: dict[str, Any] | None = None,
    version: str = "1",
    verdict: str | None = None,
    seconds: float = 40.0,
    versions: list[dict[str, Any]] | None = None,
    graded: dict[str, Any] | None = None,
    **spec: Any,
) -> Path:
    """One run on disk; without a score the agent submitted nothing; `graded` has other fields of its report."""
    name = f"20261122-120000-{task}-{re.sub('[^a-z0-9]+', '-', agent)}-{seed:06d}"
    path = folder / name
    path.mkdir(parents=True)
    told: dict[str, Any] = {"id": name, "task": task, "agent": agent, "sandbox": "process", "seed": seed}
    told |= {"network": "none", "options": {}, "limits": limits or {"time_limit": 60.0, "cpus": 1.0}, **spec}
    (path / "run.json").write_text(json.dumps({"spec": told, "use": {"task_version": version, "agent_version": "1"}}))
    ended = {"stage": "running", "status": "finished", "outcome": {"seconds": seconds}}
    stage = {"seq": 0, "time": "2026-11-22T12:00:09Z", "type": "stage", "data": ended}
    event = {"seq": 1, "time": "2026-11-22T12:00:10Z", "type": "state", "data": {"state": state, "cause": cause}}
    (path / "events.jsonl").write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in (stage, event)))
    if cause in ("environment_broke", "task_broken"):
        return path
    report = {
        "competition_id": task,
        "score": score,
        "gold_threshold": 0.9,
        "silver_threshold": 0.8,
        "bronze_threshold": 0.7,
        "median_threshold": 0.5,
        "any_medal": medal is not None,
        **{f"{one}_medal": one == medal for one in MEDALS},
        "above_median": score is not None and score > 0.5,
        "submission_exists": score is not None,
        "valid_submission": score is not None,
        "is_lower_better": False,
        "created_at": "2026-11-22T12:00:10Z",
        "submission_path": "output/submission.csv",
        "task_version": version,
        "metric": "accuracy",
        "percentile": None if score is None else 100 * score,
        **({"verdict": {"status": verdict}} if verdict else {}),
        **(graded or {}),
    }
    (path / "report.json").write_text(json.dumps(report))
    if versions is not None:
        (path / "scores.json").write_text(json.dumps(versions))
    return path


@pytest.fixture
def add_run(tmp_path: Path) -> Callable[..., Path]:
    """Write a run into the test's folder `runs`: `add_run(task, agent, seed, medal=…, score=…)`."""

    def add(task: str, agent: str, seed: int, **facts: Any) -> Path:
        return write_run(tmp_path / "runs", task, agent, seed, **facts)

    return add
