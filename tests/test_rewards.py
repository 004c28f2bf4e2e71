"""Rewards of all tasks by the default of all bridges: bounded, monotone, and none for nothing."""

from __future__ import annotations

import math
from pathlib import Path

import mleredux
import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mleredux import MlereduxError, Run
from mleredux._core.stages.grade import make_report
from mleredux.models import Evidence, Report, Task
from mleredux.plugin.command import current
from mleredux_agents import REWARDS, rule_of
from mleredux_experiments.commands.leaderboard import command as leaderboard

TASKS = sorted(current().entries("tasks"))
SCORES = st.floats(-1e9, 1e9) | st.floats(-2, 2) | st.floats(allow_nan=True, allow_infinity=True)
DEFAULT = rule_of(next(iter(REWARDS)))


def report_of(task: Task, score: float | None) -> Report:
    return make_report(task, score, path="submission.csv", exists=True)


def test_all_tasks_are_tried() -> None:
    assert len(TASKS) >= 91 and DEFAULT.name == "standing"


@pytest.mark.parametrize("name", TASKS)
@settings(max_examples=40, deadline=None)
@given(first=SCORES, second=SCORES)
def test_a_valid_submission_is_worth_more_than_none_and_a_better_one_more(
    name: str, first: float, second: float
) -> None:
    task = current().task(name).model_copy(update={"leaderboard": None})  # percentiles don't matter here
    reports = [report_of(task, first), report_of(task, second)]
    rewards = [DEFAULT.of_report(report) for report in reports]
    nothing = DEFAULT.of_report(report_of(task, None))
    assert all(nothing < reward <= 1 for reward in rewards) and nothing == DEFAULT.of_report(None) == 0
    assert all(math.isfinite(rule_of(rule, -99.0).of_report(report)) for rule in REWARDS for report in reports)
    scores = [report.score for report in reports]
    if all(score is not None and math.isfinite(score) for score in scores):
        order = -1 if task.direction == "minimize" else 1
        better = order * ((scores[0] or 0) - (scores[1] or 0))
        assert (rewards[0] - rewards[1]) * better >= 0
        if task.thresholds is not None and abs(better) > 1e-3 and max(map(abs, map(float, scores))) < 100:  # type: ignore[arg-type]
            assert rewards[0] != rewards[1] or rewards[0] == 1  # no score is better than the best possible


@pytest.mark.parametrize("name", TASKS)
def test_the_references_of_leaderboards_are_told_apart(name: str) -> None:
    task = current().task(name)
    if task.thresholds is None:
        return
    median, gold = (
        DEFAULT.of_report(report_of(task, score)) for score in (task.thresholds.median, task.thresholds.gold)
    )
    assert median == pytest.approx(0.55, abs=0.01) and gold > median + 0.1


@given(score=SCORES, median=st.floats(allow_nan=False, allow_infinity=False), gold=st.floats(allow_nan=False))
@example(score=1.7e308, median=-1.7e308, gold=1.7e308)
def test_a_valid_submission_is_worth_more_than_none_by_any_thresholds(score: float, median: float, gold: float) -> None:
    report = report_of(current().task("diabetes"), score)
    report = report.model_copy(update={"median_threshold": median, "gold_threshold": gold})
    assert 0 < DEFAULT.of_report(report) <= 1


def test_a_tainted_result_is_worth_as_much_as_none() -> None:
    report = report_of(current().task("wine"), 0.0)
    tainted = report.judged((Evidence(kind="canary", level="seen", why="The canary was seen."),), None)
    assert DEFAULT.of_report(report) > 0.5 and DEFAULT.of_report(tainted) == 0


@pytest.mark.parametrize("invalid", [math.nan, math.inf])
def test_rewards_are_finite_and_those_without_bound_need_a_worst(tmp_path: Path, invalid: float) -> None:
    with pytest.raises(MlereduxError, match="can't be a reward"):
        rule_of("standing", invalid)
    run = mleredux.run("wine", "dummy", sandbox="process", runs_dir=tmp_path, data_dir=tmp_path / "data")
    with pytest.raises(MlereduxError, match="can't be a reward"):
        rule_of(lambda _run: invalid).of(run)
    with pytest.raises(MlereduxError, match="has no bound"):
        rule_of("score")
    assert rule_of("score", -99.0).of_report(report_of(current().task("diabetes"), 73.5)) == -73.5


def test_runs_whose_score_was_given_out_are_marked_once_and_not_ranked(tmp_path: Path) -> None:
    ended: list[Run] = [
        mleredux.run("wine", "dummy", seed=seed, sandbox="process", runs_dir=tmp_path, data_dir=tmp_path / "data")
        for seed in (0, 1)
    ]
    marked, other = ended
    assert DEFAULT.of(marked, shown_by="some-bridge") == DEFAULT.of(marked, shown_by="some-bridge") > 0
    report = marked.report
    assert report is not None and report.verdict.status == "score given" and report.percentile is not None
    assert [item.kind for item in report.verdict.evidence].count("score-given") == 1
    assert other.report is not None and other.report.verdict.status == "not checked"
    shown = CliRunner().invoke(leaderboard, ["--runs-dir", str(tmp_path), "--measure", "percentile", "--json"], obj={})
    assert '"runs": 1' in shown.output and "1 run whose test score was revealed" in shown.output
