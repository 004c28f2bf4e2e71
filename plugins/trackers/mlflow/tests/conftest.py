"""Finished runs on disk as the pipeline writes them: real files, real events, no execution."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.stages.produce import write_manifest
from mleredux._core.store import Run, RunStore
from mleredux.models import Artifact, Ledger, Limits, LlmUse, Report, RunPlan

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # before any test imports MLflow
START = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
RESOURCES = "seconds,memory_mb,cpu_seconds,processes,gpu_percent,gpu_memory_mb\n0.25,80,0.1,1,,\n10.25,120,15.1,4,,\n"

MakeRun = Callable[..., Run]


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an MLflow store created by its own client, to be copied, since creating one takes seconds."""
    from mlflow.tracking import MlflowClient

    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}", f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def at() -> Callable[[float], int]:
    """Return the Unix time in milliseconds, this number of seconds after the start."""
    return lambda seconds: round((START + timedelta(seconds=seconds)).timestamp() * 1000)


@pytest.fixture
def go_on() -> Callable[..., None]:
    """Append events to a run's log."""
    return add_events


def add_events(run: Run, timed: list[tuple[float, str, dict[str, Any]]]) -> None:
    """Append events at the given seconds after the start."""
    known = len(run.events())
    with (run.path / "events.jsonl").open("a", encoding="utf-8") as file:
        for seq, (seconds, kind, data) in enumerate(timed, start=known):
            time = (START + timedelta(seconds=seconds)).isoformat()
            file.write(json.dumps({"seq": seq, "time": time, "type": kind, "data": data}) + "\n")


def write_report(run: Run, **changes: Any) -> None:
    """Write a report with a silver medal among ten entries, and the two versions of the submission."""
    fields: dict[str, Any] = {
        "competition_id": run.spec.task,
        "score": 0.97222,
        "any_medal": True,
        "silver_medal": True,
        "above_median": True,
        "submission_exists": True,
        "valid_submission": True,
        "is_lower_better": False,
        "created_at": START + timedelta(seconds=22),
        "submission_path": "output/submission.csv",
        "task_version": "1",
        "metric": "accuracy",
        "percentile": 82.0,
        "ledger": Ledger(validations=3),
    }
    report = Report.model_validate({**fields, **changes})
    (run.path / "report.json").write_text(report.model_dump_json(), encoding="utf-8")
    scores = [
        {"number": n, "time": (START + timedelta(seconds=s)).isoformat(), "seconds": s, "size": 9, "score": x}
        for n, s, x in ((1, 8, 0.9), (2, 12, None), (3, 20, report.score))
    ]
    content = [{**score, "valid": score["score"] is not None} for score in scores]
    (run.path / "scores.json").write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Create a run that ended in the given state; arguments are those of `RunSpec`."""

    def make(ended: str = "done", cause: str | None = None, **asked: Any) -> Run:
        fields = {
            "task": "tides",
            "agent": "analyst",
            "sandbox": "docker",
            "seed": 3,
            "network": "gateway",
            "limits": Limits(time_limit=120),
        }
        run = RunStore(tmp_path / "runs").create(RunPlan.model_validate({**fields, **asked}), tmp_path / "data")
        run.record_use(task_version="1", packages={"mleredux": "0.1.0"}, image="sha256:12", git_commit="0" * 40)
        (run.path / "events.jsonl").unlink()
        (run.output_dir / "submission.csv").write_text("id,label\n1,7\n", encoding="utf-8")
        (run.logs_dir / "resources.csv").write_text(RESOURCES, encoding="utf-8")
        (run.path / "report.html").write_text("<p>report</p>", encoding="utf-8")
        use = LlmUse(calls=4, prompt_tokens=900, completion_tokens=70, cost_usd=0.25)
        outcome = {"exit_code": 0, "seconds": 20.5, "max_memory_mb": 120, "cpu_seconds": 15.1, "cause": cause}
        add_events(
            run,
            [
                (0, "state", {"state": "queued"}),
                (0.1, "state", {"state": "preparing"}),
                (0.4, "stage", {"stage": "preparing", "status": "finished", "seconds": 0.3}),
                (0.5, "state", {"state": "running"}),
                (1, "agent", {"status": "started", "started_at": START.timestamp() + 1}),
                (21, "gateway", {"status": "closed", "use": use.model_dump(mode="json")}),
                (21.5, "stage", {"stage": "running", "status": "finished", "seconds": 21, "outcome": outcome}),
                (22, "state", {"state": "producing"}),
            ],
        )
        write_report(run)
        write_manifest(run, [Artifact(path="report.html", producer="reports")])
        add_events(run, [(23, "state", {"state": ended, **({"cause": cause} if cause else {})})])
        return run

    return make
