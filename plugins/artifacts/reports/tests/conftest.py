"""A run on disk as it is when artifacts are created: real files, real events, no execution."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.store import Run, RunStore
from mleredux.models import Ledger, Limits, Outcome, Report, RunPlan, State

START = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
LOG = b"reading 1,437 rows\n\rfold 1/5\rfold 5/5\n\x1b[32mvalidation accuracy 0.9722\x1b[0m\n\xff\xfe done\n"

MakeRun = Callable[..., Run]


def write_events(run: Run, timed: list[tuple[float, str, dict[str, Any]]]) -> None:
    """Append events at the given seconds after the start."""
    lines = [
        {"seq": seq, "time": (START + timedelta(seconds=at)).isoformat(), "type": kind, "data": data}
        for seq, (at, kind, data) in enumerate(timed)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run.path / "events.jsonl").write_text(text, encoding="utf-8")


def report_of(run: Run, **changes: Any) -> Report:
    """A silver medal on ten entries."""
    fields: dict[str, Any] = {
        "competition_id": run.spec.task,
        "score": 0.97222,
        "gold_threshold": 0.98,
        "silver_threshold": 0.97,
        "bronze_threshold": 0.95,
        "median_threshold": 0.93,
        "any_medal": True,
        "silver_medal": True,
        "above_median": True,
        "submission_exists": True,
        "valid_submission": True,
        "is_lower_better": False,
        "created_at": START,
        "submission_path": "submissions/0002.csv",
        "task_version": "1",
        "metric": "accuracy",
        "percentile": 82.0,
        "teams": 10,
        "ledger": Ledger(validations=1, network="none"),
    }
    return Report.model_validate({**fields, **changes})


def scores_of(report: Report) -> list[dict[str, Any]]:
    """A first version that was worse, and the one of the report."""
    last = {"score": report.score, "valid": report.valid_submission, "message": report.message}
    scores = [{"score": 0.9, "valid": True}, last]
    return [
        {
            "number": number,
            "time": (START + timedelta(seconds=at)).isoformat(),
            "seconds": at - 0.6,
            "size": 17,
            **score,
        }
        for number, (at, score) in enumerate(zip((8, 20), scores, strict=True), start=1)
    ]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Create a run in state `producing`; arguments replace the report's fields, `report=None` omits it."""

    def make(*, outcome: dict[str, Any] | None = None, report: dict[str, Any] | None = {}, **asked: Any) -> Run:  # noqa: B006
        fields = {
            "task": "no-such-task",
            "agent": "no-such-agent",
            "sandbox": "process",
            "seed": 3,
            "limits": Limits(time_limit=120),
        }
        run = RunStore(tmp_path / "runs").create(RunPlan.model_validate({**fields, **asked}), tmp_path / "data")
        run.record_use(
            task_version="1", agent_version="4", packages={"mleredux": "0.1.0"}, python="3.11.7", host="Linux"
        )
        (run.path / "task").mkdir()
        (run.path / "task" / "description.md").write_text("# Digits\n\nWhich digit is it?\n", encoding="utf-8")
        (run.output_dir / "code").mkdir()
        (run.output_dir / "rollout").mkdir()
        (run.output_dir / "code" / "train.py").write_text("print('training')\n", encoding="utf-8")
        (run.logs_dir / "agent.log").write_bytes(LOG)
        for number in (1, 2):
            (run.path / "submissions" / f"000{number}.csv").write_text("id,label\n1,7\n2,3\n", encoding="utf-8")
        ended = Outcome.model_validate(
            {"exit_code": 0, "seconds": 21.5, "max_memory_mb": 300, "cpu_seconds": 30, **(outcome or {})}
        )
        write_events(
            run,
            [
                (0, "state", {"state": State.QUEUED}),
                (0.1, "state", {"state": State.PREPARING}),
                (0.4, "stage", {"stage": State.PREPARING, "status": "finished", "seconds": 0.3}),
                (0.4, "state", {"state": State.BUILDING}),
                (0.5, "stage", {"stage": State.BUILDING, "status": "finished", "seconds": 0.1}),
                (0.5, "state", {"state": State.RUNNING}),
                (0.6, "agent", {"status": "started", "sandbox": "process", "handle": "1", "agent": "x"}),
                (8, "submission", {"number": 1, "path": "submissions/0001.csv", "size": 17}),
                (8.5, "validation", {"valid": True, "message": "Submission is valid."}),
                (20, "submission", {"number": 2, "path": "submissions/0002.csv", "size": 17}),
                (22, "stage", {"stage": State.RUNNING, "status": "finished", "outcome": ended.model_dump(mode="json")}),
                (22, "state", {"state": State.GRADING}),
                (22.6, "stage", {"stage": State.GRADING, "status": "finished"}),
                (22.6, "state", {"state": State.PRODUCING}),
            ],
        )
        if report is not None:
            graded = report_of(run, **report)
            (run.path / "report.json").write_text(graded.model_dump_json(), encoding="utf-8")
            (run.path / "scores.json").write_text(json.dumps(scores_of(graded)), encoding="utf-8")
        return run

    return make
