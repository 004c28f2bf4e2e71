"""A run is graded again after its task was fixed; both reports are kept, with versions."""

from __future__ import annotations

import json
import os
from pathlib import Path

import mleredux
import pytest
from mleredux.errors import MlereduxError
from mleredux.plugin.command import current
from mleredux_grading import regrade


def test_a_fixed_task_is_graded_again_and_both_reports_are_kept(tmp_path: Path) -> None:
    data = tmp_path / "data"
    run = mleredux.run("wine", "dummy", sandbox="process", runs_dir=tmp_path / "runs", data_dir=data)
    assert f"<b>Run {run.id}</b> done" in run._repr_html_() and "log-loss" in run._repr_html_()
    task = current().task("wine")
    current()._objects["tasks", "wine"] = task.model_copy(update={"version": "1.1"})
    try:
        with pytest.raises(MlereduxError, match="but the task has version"):
            regrade(run, current())
        mleredux.prepare("wine", data_dir=data, force=True)
        before, after = regrade(run, current())
    finally:
        current()._objects["tasks", "wine"] = task
    assert (before.score, before.task_version, after.task_version) == (after.score, task.version, "1.1")
    kept = json.loads((run.path / "grades.json").read_bytes())
    assert [one["task_version"] for one in kept] == [task.version, "1.1"]
    assert kept[0]["report"]["score"] == before.score and kept[1]["packages"]["mleredux-graders"]
    report = run.report
    assert report is not None and report.task_version == "1.1" and report.verdict == before.verdict
    manifest = run.manifest
    assert manifest is not None and "grades.json" in {one.path for one in manifest.artifacts}


def test_a_run_without_a_report_is_not_graded(tmp_path: Path) -> None:
    run = mleredux.run("wine", "dummy", sandbox="process", runs_dir=tmp_path)
    (run.path / "report.json").unlink()
    with pytest.raises(MlereduxError, match="has no report"):
        regrade(run, current())


BAD = ("", "{", "{}", "[1]", "[[]]", "[" * 100_000)


@pytest.mark.attack
def test_earlier_grades_that_can_not_be_read_are_named(tmp_path: Path) -> None:
    run = mleredux.run("wine", "dummy", sandbox="process", runs_dir=tmp_path)
    grades, report = run.path / "grades.json", (run.path / "report.json").read_bytes()
    for spoil in (
        grades.mkdir,
        lambda: os.mkfifo(grades),
        *(lambda text=text: grades.write_text(text) for text in BAD),
    ):
        spoil()
        with pytest.raises(MlereduxError, match=r"grades\.json is (damaged|a folder|not a regular file)"):
            regrade(run, current())
        assert (run.path / "report.json").read_bytes() == report
        grades.rmdir() if grades.is_dir() else grades.unlink()
