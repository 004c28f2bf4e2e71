"""The score over time: every version of the submission is graded after the run, whatever some of them are."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.data import Prepared
from mleredux._core.stages import grade_versions as module
from mleredux._core.stages.grade_versions import grade_versions, spread
from mleredux._core.stages.prepare import prepare
from mleredux._core.store.run import SubmissionVersion
from mleredux.models import State

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def prepared(toy: Any) -> Prepared:
    found: Prepared = prepare(toy.task(), toy.catalogue, toy.data)
    return found


@pytest.fixture
def version(tmp_path: Path, prepared: Prepared) -> Callable[..., SubmissionVersion]:
    """Makes versions: so many right answers, or a text as it is."""
    answers = (prepared.private / "answers.csv").read_text().splitlines()

    def make(number: int, right: int | str) -> SubmissionVersion:
        path = tmp_path / f"{number:04d}.csv"
        if isinstance(right, str):
            path.write_text(right)
        else:
            wrong = [f"{row.split(',')[0]},-1" for row in answers[1 + right :]]
            path.write_text("\n".join([*answers[: 1 + right], *wrong]) + "\n")
        return SubmissionVersion(number, path, START + timedelta(seconds=10 * number), path.stat().st_size)

    return make


def graded(toy: Any, prepared: Prepared, versions: list[SubmissionVersion], **more: Any) -> list[Any]:
    return grade_versions(toy.task(), versions, prepared.private, toy.catalogue, started_at=START.timestamp(), **more)


def test_a_run_leaves_the_score_of_each_version(toy: Any) -> None:
    run = toy.run("copy")
    assert run.state is State.DONE
    assert [(score.number, score.score, score.valid) for score in run.scores] == [(1, run.report.score, True)]
    assert "scores.json" in {artifact.path for artifact in run.manifest.artifacts}
    assert not list(run.output_dir.rglob("scores.json")), "the agent's folder holds no score"


def test_bad_versions_are_sentences_among_scores(toy: Any, prepared: Prepared, version: Any) -> None:
    scores = graded(toy, prepared, [version(1, 10), version(2, "no csv at all\n"), version(3, 30), version(4, 40)])
    assert [score.score for score in scores] == [0.25, None, 0.75, 1.0]
    assert [score.seconds for score in scores] == [10.0, 20.0, 30.0, 40.0]
    assert [score.medal for score in scores] == [None, None, "bronze", "gold"]
    assert scores[1].message and not scores[1].valid


def test_equal_versions_and_the_graded_one_are_scored_once(
    toy: Any, prepared: Prepared, version: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def counting(jobs: list[Any], *rest: Any, **more: Any) -> Any:
        asked.extend(jobs)
        return original(jobs, *rest, **more)

    original = module.score_in_child
    monkeypatch.setattr(module, "score_in_child", counting)
    versions = [version(1, 10), version(2, 20), version(3, 10), version(4, 40)]
    report = toy.run("copy").report.model_copy(update={"score": 1.0})
    scores = graded(toy, prepared, versions, graded={versions[3].path: report})
    assert [score.score for score in scores] == [0.25, 0.5, 0.25, 1.0]
    assert len(asked) == 2


def test_a_version_that_ends_the_grader_s_process_costs_no_other(toy: Any, prepared: Prepared, version: Any) -> None:
    (prepared.private / "die").touch()  # tells the toy grader to die of the -9 below
    deadly = version(1, 10).path.read_text().replace(",-1", ",-9", 1)
    scores = graded(toy, prepared, [version(1, 10), version(2, deadly), version(3, 30)])
    assert [score.score for score in scores] == [0.25, None, 0.75]
    assert "ended with code" in scores[1].message


def test_where_time_is_short_the_curve_is_coarse_but_whole(toy: Any, prepared: Prepared, version: Any) -> None:
    versions = [version(number, number) for number in range(1, 10)]
    assert [chosen.number for chosen in spread(versions)][:5] == [9, 1, 5, 3, 7]
    assert sorted(chosen.number for chosen in spread(versions)) == list(range(1, 10))
    scores = graded(toy, prepared, versions, seconds=0)
    assert {score.message for score in scores} == {"Not graded: grading the earlier versions took too long."}
