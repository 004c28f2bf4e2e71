"""The report of a run names it, so that no other run has its result."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.store import RunStore
from mleredux.errors import MlereduxError
from mleredux.models import Limits, Report, RunPlan

PLAN = RunPlan(task="toy", agent="copy", sandbox="process", seed=0, limits=Limits())
NOWHERE = "/nowhere"


def test_a_report_of_another_run_is_never_the_result_of_this_one(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    run, other = store.create(PLAN, NOWHERE), store.create(PLAN, NOWHERE)
    facts: dict[str, Any] = {
        "submission_exists": True,
        "valid_submission": True,
        "is_lower_better": False,
        "submission_path": "x.csv",
    }
    graded = Report(
        competition_id="toy", score=1.0, created_at=datetime.now(UTC), task_version="1", metric="m", **facts
    )
    run.write_report(graded)
    shutil.copyfile(run.path / "report.json", other.path / "report.json")
    assert run.report == graded.model_copy(update={"run": run.id})
    with pytest.raises(MlereduxError, match=rf"report\.json is damaged \(it is the report of run {run.id}\)"):
        assert store.get(other.id).report
    copy = shutil.copytree(run.path, tmp_path / "copy")
    (copy / "run.json").write_text((copy / "run.json").read_text().replace(run.id, copy.name))
    assert store.get(copy.name).score == 1.0, "its events name the same run as its report"
    shutil.rmtree(copy)
    store.rebuild()
    assert {row["id"]: row["score"] for row in store.rows()} == {run.id: 1.0, other.id: None}
    old = json.loads((run.path / "report.json").read_text())
    (other.path / "report.json").write_text(json.dumps({key: value for key, value in old.items() if key != "run"}))
    assert other.score == 1.0, "reports of earlier versions name no run"
