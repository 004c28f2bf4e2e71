"""Which runs a comparison counts and matches: settings, missing runs, times, copies and sources."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mleredux.errors import MlereduxError
from mleredux.plugin.command import current
from mleredux.plugin.experiment import Plan
from mleredux_experiments.analysis.analysis import analyse
from mleredux_experiments.analysis.curves import _BAND_MEANS
from mleredux_experiments.analysis.leaderboard import leaderboard
from mleredux_experiments.figures.tables import analysis_tables, leaderboard_tables, markdown
from mleredux_experiments.inference.comparison import compare
from mleredux_experiments.inference.errors import bounded_limits
from mleredux_experiments.pages.compare import analysis_of, lines
from mleredux_experiments.results import sources, uniformity
from mleredux_experiments.results.measures import measure
from mleredux_experiments.results.scores import task_scores
from mleredux_experiments.results.sources import load, runs_below
from mleredux_experiments.results.table import Results, Row, source
from mleredux_experiments.sdk import analysed

AddRun = Callable[..., Path]


def test_failures_are_zeros_and_broken_environments_are_left_out(add_run: AddRun, tmp_path: Path) -> None:
    for seed in range(2):
        add_run("a", "x", seed, medal="gold", score=0.95)
        add_run("b", "x", seed, state="failed", cause="agent_crashed")
        add_run("a", "y", seed, medal="bronze", score=0.75)
        add_run("b", "y", seed, medal="bronze", score=0.75)
    add_run("a", "x", 2, state="failed", cause="environment_broke")
    add_run("b", "y", 2, score=0.99, medal="gold", verdict="tainted")
    results = load(tmp_path / "runs")
    rows = {one.name: one for one in leaderboard(results)}
    assert rows["x"].splits["all"]["any_medal"].mean == 50
    assert rows["x"].left_out == {"environment broke": 1}
    assert rows["y"].splits["all"]["any_medal"].mean == pytest.approx((100 + 200 / 3) / 2)
    assert rows["y"].splits["all"]["gold"].mean == 0
    found = compare(results, "x", "y")
    assert found.left_out == {"environment broke": 1, "not trusted, counted as failures": 1}
    assert found.bounds is not None
    assert found.bounds.low < found.difference < found.bounds.high


@pytest.mark.parametrize(
    ("state", "cause"),
    [("cancelled", "cancelled"), ("failed", "environment_broke"), ("failed", "task_broken"), ("running", None)],
)
@pytest.mark.parametrize("everywhere", [True, False])
def test_a_task_without_a_result_does_not_complete_a_row(
    add_run: AddRun, tmp_path: Path, state: str, cause: str | None, everywhere: bool
) -> None:
    """A row that only started runs of a task lacks it as much as a row without any, and has no precedence."""
    add_run("a", "worst", 0, score=0.1)
    add_run("b", "worst", 0, state=state, cause=cause)
    add_run("a", "best", 0, medal="gold", score=0.95)
    add_run("a", "whole", 0, score=0.6)
    add_run("b", "whole", 0, **({"state": state, "cause": cause} if everywhere else {"score": 0.6}))
    rows = leaderboard(load(tmp_path / "runs"), by="any_medal")
    assert [row.name for row in rows if row.complete] == ([] if everywhere else ["whole"])
    assert all(row.complete == (row.splits["all"]["any_medal"].missing == 0) for row in rows)
    names = [row.name for row in rows]
    assert names.index("best") < names.index("worst"), names


def test_settings_are_not_mixed(add_run: AddRun, tmp_path: Path) -> None:
    for seed in range(2):
        add_run("a", "x", seed, score=0.9)
        add_run("a", "y", seed, score=0.9, limits={"time_limit": 120.0, "cpus": 1.0})
        add_run("a", "z", seed, score=0.9, options={"depth": seed})
        add_run("a", "w", seed, score=0.9, version=str(seed))
        add_run("a", "v", seed, score=0.9, limits={"retries": {"agent_crashed": seed}})
    results = load(tmp_path / "runs")
    with pytest.raises(MlereduxError, match=r"different limits: time_limit 1 min \(x\) and 2 min \(y\)"):
        compare(results, "x", "y")
    with pytest.raises(MlereduxError, match=r"runs of z differ in options\.depth: 0 \(1 run\) and 1"):
        compare(results, "x", "z")
    assert compare(results, "x", "z[depth=1]").tasks[0].runs == (2, 1)
    names = {one.name: one.runs for one in leaderboard(results.where(["task_version=1"]))}
    retried = {"v[retries.agent_crashed=0]": 1, "v[retries.agent_crashed=1]": 1}
    assert all(len(results.arm(name)) == 1 for name in retried)
    assert names == {"x": 2, "y": 2, "z[depth=0]": 1, "z[depth=1]": 1, "w": 1, **retried}
    with pytest.raises(MlereduxError, match="different versions of the task: 0, 1"):
        leaderboard(results.where(["arm=w"]))
    assert leaderboard(results.where(["arm=w", "task_version=0"]))[0].runs == 1


def test_arms_of_an_experiment_may_differ_on_purpose(add_run: AddRun, tmp_path: Path) -> None:
    for seed in range(2):
        for arm, time in (("short", 60.0), ("long", 600.0)):
            add_run("a", f"agent-{arm}", seed, score=0.9, limits={"time_limit": time}, arm=arm, experiment="e1")
    add_run("a", "other", 0, score=0.9)
    results = load(tmp_path / "runs", experiment="e1")
    assert compare(results, "short", "long").notes == ("Limits differ: time_limit 1 min (short) and 10 min (long).",)
    experiment = {"name": "e1", "tasks": ["a"], "seeds": [0, 1]}
    for own, origin in (({"time_limit": 60}, ", by plan"), ({"cpus": 2}, "")):
        arms = {"short": {"agent": "agent-short", "limits": own}, "long": {"agent": "agent-long"}}
        plan = Plan.model_validate({"experiment": experiment, "arms": arms})
        (note,) = compare(results.under(plan), "short", "long").notes
        assert note == f"Limits differ{origin}: time_limit 1 min (short) and 10 min (long)."
        assert note in analysed(results, plan).remarks, "also of an analysis, in the terminal and in its report"


@pytest.mark.parametrize(("cpus", "refused"), [((2.0, 1.0), False), ((4.0, 1.0), False), ((8.0, 1.0), True)])
def test_a_small_machine_may_reduce_what_agents_declare(
    add_run: AddRun, tmp_path: Path, cpus: tuple[float, float], refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = {"x": {"limits.cpus": 4.0}, "y": {"limits.cpus": 1.0}}
    monkeypatch.setattr(uniformity, "_declared", lambda row: declared[row.agent])
    for agent, own in zip(("x", "y"), cpus, strict=True):
        add_run("a", agent, 0, score=0.9, limits={"time_limit": 60.0, "cpus": own})
    results = load(tmp_path / "runs")
    if refused:
        with pytest.raises(MlereduxError, match="The arms ran with different limits: cpus 8"):
            compare(results, "x", "y")
    else:
        (note,) = compare(results, "x", "y").notes
        assert note.startswith("Limits differ, as the agents declare them or the machine allows: cpus ")


@pytest.mark.parametrize("name", ["percentile", "any_medal", "valid"])
@pytest.mark.parametrize("lost", [{(0, 1)}, {(0, 0), (0, 1), (1, 2)}, {(2, 0), (2, 1), (2, 2)}, set()])
def test_missing_runs_have_bounds_within_and_over_tasks(name: str, lost: set[tuple[int, int]]) -> None:
    def row(arm: str, task: int, seed: int, gone: bool = False) -> Row:
        value = 20.0 * task + 5 * seed
        known: dict[str, Any] = {"valid": True, "percentile": value, "medal": "gold" if value > 30 else None}
        return Row(
            f"{arm}{task}{seed}", arm, arm, f"t{task}", seed, **({"cause": "environment_broke"} if gone else known)
        )

    places = [(task, seed) for task in range(3) for seed in range(3)]
    never = {place for place in lost if place[1] == 0}
    rows = [row("a", *place) for place in places]
    rows += [row("b", *place, gone=place in lost) for place in places if place not in never]
    found = analyse(Results(tuple(rows)), name, whole=False)
    whole, part = (found.arm(arm).estimates[name] for arm in "ab")
    assert whole.bounds is None and whole.missing == 0
    assert (part.missing, part.bounds is None) == (len(lost), not lost)
    values = {place: measure(name).of(row("a", *place)) for place in places}
    for end, limit in zip((0.0, 100.0), part.bounds or (), strict=False):
        assert limit == pytest.approx(np.mean([end if place in lost else values[place] for place in places]))
    text = "\n".join(map(markdown, analysis_tables(found)))
    assert ("if missing fail" in text) == ("† runs are missing" in text) == bool(lost)
    first = found.results.keep(one for one in rows if one.task == "t0")
    boards = leaderboard_tables(leaderboard(first, [name]), name)
    assert any("if missing fail" in table.columns for table in boards) == any(task == 0 for task, _ in lost)


def test_what_counts_after_a_time_is_the_last_version_not_the_best(add_run: AddRun, tmp_path: Path) -> None:
    versions = [
        {"seconds": 10, "score": 0.95, "valid": True},
        {"seconds": 20, "score": 0.6, "valid": True},
        {"seconds": 30, "score": 0.75, "valid": True},
    ]
    for agent in ("x", "y"):
        add_run("a", agent, 0, score=0.75, medal="bronze", versions=versions if agent == "x" else [])
    rows = load(tmp_path / "runs").arm("x")
    assert [rows[0].at(seconds).medal for seconds in (5, 15, 25, 35)] == [None, "gold", None, "bronze"]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("cv+planted-1@digits", "digits"),
        ("digits+fixed", "digits"),
        ("herbarium-2020-fgvc7", "herbarium"),
        ("iwildcam-2019-fgvc6", "iwildcam"),
        ("aptos2019-blindness-detection", "aptos2019-blindness-detection"),
    ],
)
def test_sources_group_tasks_that_share_data(task: str, expected: str) -> None:
    assert source(task) == expected


@pytest.mark.parametrize("how", ["copied", "linked", "renamed"])
def test_a_copy_of_a_run_is_never_a_second_seed(add_run: AddRun, tmp_path: Path, how: str) -> None:
    run, other = add_run("a", "x", 0, score=0.9), tmp_path / "runs" / "other"
    alone = load(tmp_path / "runs")
    if how == "copied":
        shutil.copytree(run, other)
    elif how == "linked":
        other.symlink_to(run)
    else:
        run.rename(other)
    found = runs_below(tmp_path / "runs")
    assert found.rows == (() if how == "renamed" else alone.rows)
    assert found.remarks() == ["Left out: other, a copy of another run, or renamed."]


def test_raw_scores_of_different_metrics_are_not_averaged(add_run: AddRun, tmp_path: Path) -> None:
    for task, metric in (("a", "rmse"), ("b", "roc-auc")):
        for agent in ("x", "y"):
            report = add_run(task, agent, 0, score=0.9 if agent == "y" else 0.8) / "report.json"
            report.write_text(json.dumps({**json.loads(report.read_text()), "metric": metric}))
    results = load(tmp_path / "runs")
    with pytest.raises(MlereduxError, match="2 different metrics can't be averaged"):
        compare(results, "x", "y", "score")
    with pytest.raises(MlereduxError, match="2 different metrics can't be averaged"):
        leaderboard(results, ("score",), "score")
    assert compare(results.where(["task=a"]), "x", "y", "score").difference == pytest.approx(0.1)


@pytest.mark.parametrize("name", ["run.json", "report.json", "events.jsonl"])
@pytest.mark.parametrize("number", ["9" * 400, "-" + "9" * 400, "1e999", "NaN"])
def test_numbers_that_no_float_holds_cost_their_run_and_no_more(
    add_run: AddRun, tmp_path: Path, name: str, number: str
) -> None:
    damaged, _ = add_run("a", "x", 0, score=0.9) / name, add_run("a", "y", 0, score=0.8)
    text = re.sub(r"(?<=: )-?[0-9.]+(?=[,\n}])", number, damaged.read_text())
    assert text != damaged.read_text() or name != "run.json"
    damaged.write_text(text)
    assert "y" in {row.arm for row in load(tmp_path / "runs").rows}


def test_a_report_of_another_run_is_left_out(add_run: AddRun, tmp_path: Path) -> None:
    runs = [add_run("a", agent, 0, score=score) for agent, score in (("x", 0.9), ("y", 0.1))]
    report = json.loads((runs[0] / "report.json").read_text())
    (runs[1] / "report.json").write_text(json.dumps({**report, "run": runs[0].name}))
    results = load(tmp_path / "runs")
    assert [row.arm for row in results.rows] == ["x"] and runs[1].name in str(results.remarks())
    assert f"which can't be read (it is the report of run {runs[0].name})" in str(results.remarks())
    events = runs[1] / "events.jsonl"
    last = json.loads(events.read_text().splitlines()[-1])
    verdict = {**last, "seq": last["seq"] + 1, "type": "verdict", "data": {"status": "verified", "run": runs[0].name}}
    events.write_text(f"{events.read_text()}{json.dumps(verdict, separators=(',', ':'))}\n")
    assert [row.arm for row in load(tmp_path / "runs").rows] == ["x", "y"], "a copy with a new id"


@pytest.mark.parametrize("lower", [False, True])
def test_arms_are_listed_from_the_best_by_the_measure(add_run: AddRun, tmp_path: Path, lower: bool) -> None:
    for seed in range(2):
        for arm, score in (("a", 0.5), ("b", 0.9), ("c", 0.7)):
            rank = 100 * (1 - score if lower else score)
            add_run("t", arm, seed, score=score, graded={"is_lower_better": lower, "percentile": rank})
    best = ["a", "c", "b"] if lower else ["b", "c", "a"]
    for name in ("percentile", "score"):
        analysis = analyse(load(tmp_path / "runs"), name)
        listed = list(lines(analysis, task_scores(analysis.results.arms)))
        assert [line.arm for line in listed] == best and [line.leads for line in listed] == [True, False, False]
    tables = analysis_tables(analyse(load(tmp_path / "runs"), "percentile"))
    [ranked] = [table for table in tables if "tasks like these" in table.title]
    assert [row[0] for row in ranked.rows] == best


def test_an_arm_is_not_better_than_arms_without_runs(add_run: AddRun, tmp_path: Path) -> None:
    for task, arms in (("both", "ab"), ("only b", "b"), ("a failed", "ab")):
        for arm in arms:
            add_run(task, arm, 0, score=None if (task, arm) == ("a failed", "a") else {"a": 0.5, "b": 0.9}[arm])
    tasks = task_scores(load(tmp_path / "runs").arms)
    assert {task.task: task.better for task in tasks} == {"both": "b", "only b": None, "a failed": "b"}


@pytest.mark.parametrize("name", ["run.json", "report.json", "events.jsonl", "scores.json", "technique_use.json"])
def test_rows_of_pages_are_read_again_once_a_file_of_the_run_changes(
    add_run: AddRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    runs = [add_run("a", arm, 0, score=0.9) for arm in "xy"]
    read = []
    original = sources.read_run
    monkeypatch.setattr(sources, "read_run", lambda folder, rollouts: read.append(folder) or original(folder, rollouts))
    first = analysis_of(runs, None)
    assert read == runs and first is analysis_of(runs, None)
    (runs[1] / name).write_text((runs[1] / name).read_text() + " " if (runs[1] / name).exists() else "[]")
    analysis_of(runs, None)
    assert read == [*runs, runs[1]], "the other run is not read again"


def test_pages_never_fetch_the_repository_of_an_agent(
    add_run: AddRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = f"repo:{tmp_path}/missing"
    runs = [add_run("a", agent, 0, cause="time_limit", status="timed_out") for agent in (reference, "dummy")]
    monkeypatch.setattr(type(current()), "_find_agent", lambda _, name: pytest.fail(f"{name} is resolved"))
    assert {row.agent for row in analysis_of(runs, None).results.rows} == {reference, "dummy"}


def test_bands_of_curves_from_fewer_means_agree_with_those_of_decisions() -> None:
    for seed, tasks in enumerate((2, 5, 22, 75)):
        table = np.random.default_rng(seed).choice([0.0, 50.0, 100.0], size=(tasks, 4))
        few, many = (bounded_limits(table, (0.0, 100.0), most=most) for most in (_BAND_MEANS, None))
        assert np.abs(np.stack(few) - np.stack(many)).max() < 2
