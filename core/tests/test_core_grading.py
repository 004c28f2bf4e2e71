"""Grading: in a child without network and with limits; what it does wrong ends nothing but itself."""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mleredux._core.stages.dev_scores import FOLDER as INNER
from mleredux._core.stages.dev_scores import DevScores
from mleredux._core.stages.grade import ONLINE, Job, grade, make_report, score_in_children, sweep_folders
from mleredux._core.store import Run
from mleredux.errors import InvalidSubmission, TaskBroken
from mleredux.models import Ledger, Limits, NotSubmitted, Report

MLE_BENCH_FIELDS = (
    "competition_id", "score", "gold_threshold", "silver_threshold", "bronze_threshold", "median_threshold",
    "any_medal", "gold_medal", "silver_medal", "bronze_medal", "above_median", "submission_exists",
    "valid_submission", "is_lower_better", "created_at", "submission_path",
)  # fmt: skip


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """A server on this machine; who connected."""
    connected: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("TOY_PORT", str(server.getsockname()[1]))

        def accept() -> None:
            while True:
                try:
                    connection, peer = server.accept()
                except OSError:
                    return
                connected.append(peer)
                connection.close()

        threading.Thread(target=accept, daemon=True).start()
        yield connected


def report_of(toy: Any, name: str, folder: Path) -> Report:
    task, prepared, path = toy.copy_of_sample(name, folder)
    return grade(task, path, prepared.private, toy.catalogue)


def test_a_report_has_the_fields_of_mle_bench_and_round_numbers(toy: Any, tmp_path: Path) -> None:
    report = report_of(toy, "toy-thirds", tmp_path)
    document = json.loads(report.model_dump_json())
    assert list(document)[: len(MLE_BENCH_FIELDS)] == list(MLE_BENCH_FIELDS)
    assert document["score"] == 0.66667 and document["valid_submission"] and document["submission_exists"]
    assert not document["is_lower_better"] and document["above_median"]
    assert Report.model_validate_json(report.model_dump_json()) == report


def test_the_rounded_score_is_what_medals_are_given_for(toy: Any) -> None:
    task = toy.task()
    assert make_report(task, 0.899996, path="x", exists=True).gold_medal
    assert not make_report(task, 0.899994, path="x", exists=True).gold_medal
    assert not make_report(task, 0.400001, path="x", exists=True).above_median, "strictly better than the median"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(allow_nan=False) | st.integers(-(10**7), 10**7).map(lambda ties: (ties + 0.5) / 1e5))
def test_a_score_is_rounded_as_the_published_grader_is(toy: Any, score: float) -> None:
    task = toy.task()
    with numpy.errstate(over="ignore"):
        by_numpy = float(numpy.float64(score).round(5))
    for rounding, wanted in (("decimal", round(score, 5)), ("numpy", by_numpy)):
        report = make_report(task.model_copy(update={"rounding": rounding}), score, path="x", exists=True)
        assert report.score == wanted and math.copysign(1, wanted) == math.copysign(1, report.score)


def test_the_two_roundings_differ_next_to_ties(toy: Any) -> None:
    task = toy.task()
    # 0.240625 is stored as a little more, and scaled it is exactly a tie.
    assert make_report(task, 0.240625, path="x", exists=True).score == 0.24063
    assert make_report(task.model_copy(update={"rounding": "numpy"}), 0.240625, path="x", exists=True).score == 0.24062


def test_a_grader_reaches_no_network_or_the_ledger_says_so(toy: Any, tmp_path: Path, listener: list[Any]) -> None:
    task, prepared, path = toy.copy_of_sample("toy-connects", tmp_path)
    report = grade(task, path, prepared.private, toy.catalogue, ledger=Ledger(notes=("before",)))
    assert report.ledger is not None
    if _may_leave_the_network():
        assert (report.score, listener, report.ledger.notes) == (0.0, [], ("before",))
    else:
        assert report.ledger.notes == ("before", ONLINE)


@pytest.mark.parametrize("answer", [{"score": {"value": 1.0}}, {"invalid": "No."}], ids=["scored", "refused"])
def test_a_grader_that_kept_the_network_is_noted_in_the_ledger(
    answer: dict[str, Any], toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, prepared, path = toy.copy_of_sample("toy", tmp_path)
    monkeypatch.setattr("mleredux._core.stages.grade.score_in_child", lambda *_, **__: [{**answer, "offline": False}])
    report = grade(task, path, prepared.private, toy.catalogue, ledger=Ledger(notes=("before",)))
    assert report.ledger is not None and report.ledger.notes == ("before", ONLINE)
    assert grade(task, path, prepared.private, toy.catalogue).ledger is None


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("crashes", "the grader's process ended with code -11"),
        ("exits", "the grader's process ended with code 3"),
        ("eats-memory", "scoring needed more memory than its limit"),
        ("orphans", "the grader's process ended with code -9"),
    ],
)
def test_a_submission_that_fells_the_grader_is_invalid(toy: Any, tmp_path: Path, how: str, sentence: str) -> None:
    report = report_of(toy, f"toy-{how}", tmp_path)
    assert not report.valid_submission and report.score is None and report.submission_exists
    assert report.message is not None and sentence in report.message
    left = [_environment(one).get("TOY_ORPHAN", "") for one in psutil.process_iter()]
    assert not [path for path in left if path.startswith(str(tmp_path))]


def test_a_grader_that_hangs_is_ended(toy: Any, tmp_path: Path) -> None:
    task, prepared, path = toy.copy_of_sample("toy-hangs", tmp_path)
    [found] = score_in_children([Job(task, path, prepared.private)], toy.catalogue, seconds=4)
    assert isinstance(found, InvalidSubmission) and "took longer than 4 seconds" in str(found)
    assert not _graders(psutil.Process())  # others may be grading on this machine


def test_what_fells_a_grader_costs_no_other_submission_of_the_batch(toy: Any, tmp_path: Path) -> None:
    jobs = []
    for number, name in enumerate(["toy", "toy-crashes", "toy", "toy-eats-memory", "toy-hangs", "toy-exits", "toy"]):
        (tmp_path / str(number)).mkdir()
        task, prepared, path = toy.copy_of_sample(name, tmp_path / str(number))
        jobs.append(Job(task, path, prepared.private))
    results = score_in_children(jobs, toy.catalogue, workers=2, seconds=15)
    assert [getattr(result, "value", None) for result in results] == [0.5, None, 0.5, None, None, None, 0.5]
    sentences = ["code -11", "more memory than its limit", "longer than 15 seconds", "code 3"]
    for result, sentence in zip([results[1], *results[3:6]], sentences, strict=True):
        assert isinstance(result, InvalidSubmission) and sentence in result.message


def test_a_grader_is_ended_with_the_program_that_asked_it(
    toy: Any, until: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    program = toy.start("toy-hangs", "--agent", "copy")

    [grader] = until(lambda: _graders(psutil.Process(program.pid)))
    [folder] = tmp_path.glob("mleredux-grade-*")
    os.utime(folder / ".grading", (0, 0))
    sweep_folders()
    assert folder.exists(), "it is in use"
    program.kill()
    program.wait()
    until(lambda: not grader.is_running() or grader.status() == psutil.STATUS_ZOMBIE)
    sweep_folders()
    assert not folder.exists()


def test_where_the_sample_can_not_be_scored_either_the_task_is_broken(toy: Any, tmp_path: Path) -> None:
    task, prepared, path = toy.copy_of_sample("toy", tmp_path)
    (prepared.private / "answers.csv").unlink()
    with pytest.raises(TaskBroken, match=r"Grading toy failed: FileNotFoundError"):
        grade(task, path, prepared.private, toy.catalogue)


def test_a_score_that_is_no_number_is_a_score_without_medals(toy: Any, tmp_path: Path) -> None:
    report = report_of(toy, "toy-nan", tmp_path)
    assert report.valid_submission and report.score is not None and math.isnan(report.score)
    assert report.medal is None and not report.above_median and "nan" in (report.message or "")
    document = json.loads(report.model_dump_json(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert document["score"] is None and document["valid_submission"]
    assert report_of(toy, "toy-infinite", tmp_path).score == math.inf


def test_what_is_wrong_with_a_submission_is_the_sentence(toy: Any, tmp_path: Path) -> None:
    task, prepared, path = toy.copy_of_sample("toy", tmp_path)
    path.write_text("id,y\n1,0\n")
    report = grade(task, path, prepared.private, toy.catalogue)
    assert report.message == "The id in line 2 is not among the ids of the sample submission."
    nothing = grade(task, NotSubmitted(), prepared.private, toy.catalogue)
    assert nothing.message == "submission.csv does not exist." and not nothing.submission_exists


def test_plugins_named_by_a_relative_path_are_found_by_the_child(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mleredux._core.plugins import Catalogue

    task, prepared, path = toy.copy_of_sample("toy", tmp_path)
    monkeypatch.chdir(Path(__file__).parent)
    monkeypatch.setenv("MLEREDUX_PLUGINS", "toy")
    assert grade(task, path, prepared.private, Catalogue()).score == 0.5


def test_grading_is_stopped_where_the_run_is(toy: Any, tmp_path: Path) -> None:
    from mleredux.errors import Cancelled

    task, prepared, path = toy.copy_of_sample("toy-hangs", tmp_path)
    with pytest.raises(Cancelled):
        score_in_children([Job(task, path, prepared.private)], toy.catalogue, cancelled=lambda: True)


def _may_leave_the_network() -> bool:
    import subprocess
    import sys

    code = "from mleredux._core.submissions.children import leave_network; raise SystemExit(not leave_network())"
    return subprocess.run([sys.executable, "-c", code]).returncode == 0


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}


def _graders(program: psutil.Process) -> list[psutil.Process]:
    """Grandchildren of its fork server: each has a guard between the two."""
    with contextlib.suppress(psutil.Error):
        guards = [guard for server in program.children() for guard in server.children()]
        return [grader for guard in guards for grader in guard.children()]
    return []


@pytest.mark.attack
@pytest.mark.parametrize("how", ["nan", "infinite", "crashes", "exits"])
def test_predictions_that_only_the_answers_rule_out_use_up_development_scores(
    toy: Any, how: str, tmp_path: Path
) -> None:
    task, prepared, path = toy.copy_of_sample(f"toy-{how}", tmp_path)
    run, spec = toy.new(), SimpleNamespace(limits=Limits(dev_scores=2))
    (tmp_path / INNER).symlink_to(prepared.private.parent)
    Started = type("Started", (), {"spec": spec, "log": property(lambda _: run.log), "emit": run.emit})
    context: Any = SimpleNamespace(run=Started(), task=SimpleNamespace(inner=task), catalogue=toy.catalogue)
    ask = DevScores(context, tmp_path)
    sample = path.read_bytes()
    answers = []
    for content in (sample, b"a,b\n", sample.splitlines(True)[0], sample, sample):
        path.write_bytes(content)
        answers.append(ask(path, lambda: False)())
    assert [answer["left"] for answer in answers] == [1, 1, 1, 0, 0], "files that validation refuses reveal nothing"
    assert {answer["score"] for answer in answers} == {None} and run.log.state.dev_scores == (None, None)
    assert answers[0]["message"] == answers[3]["message"], "nor does the message"
    context.run = SimpleNamespace(spec=spec, log=Run(run.path).log, emit=run.emit)
    assert DevScores(context, tmp_path)(path, lambda: False)()["left"] == 0, "a resumed run has used them"
