"""What is computed of many runs: attempts, time, cost, selection, ranking; and what is written of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux.errors import MlereduxError
from mleredux.plugin.experiment import Plan
from mleredux_experiments.analysis.analysis import analyse
from mleredux_experiments.analysis.curves import (
    attempts,
    medals_per_dollar,
    over_cost,
    over_time,
    pass_all,
    pass_at,
    selection,
    time_to_medal,
)
from mleredux_experiments.analysis.leaderboard import leaderboard
from mleredux_experiments.execution.plan import make_plan
from mleredux_experiments.execution.sequence import decision
from mleredux_experiments.failures import Finding
from mleredux_experiments.inference.comparison import compare
from mleredux_experiments.inference.ranking import interquartile_mean, profile, ranking
from mleredux_experiments.results.measures import MEASURES, Immeasurable, measure
from mleredux_experiments.results.rollouts import with_rollout
from mleredux_experiments.results.sources import load
from mleredux_experiments.results.table import Results, Row, Version

AddRun = Callable[..., Path]


def row(task: str, seed: int, score: float | None, **facts: Any) -> Row:
    made = Row(
        f"{task}{seed}", "x", "x", task, seed, score=score, valid=score is not None, gold=0.9, median=0.5, **facts
    )
    return Row(**{**{name: getattr(made, name) for name in Row.__dataclass_fields__}, "medal": made.medal_of(score)})


def test_pass_at_k_is_the_published_estimator() -> None:
    assert [pass_at(10, 3, k) for k in (1, 2, 5, 8)] == pytest.approx([0.3, 0.533333, 0.916667, 1], abs=1e-6)
    assert [pass_all(10, 3, k) for k in (2, 3, 4)] == pytest.approx([0.066667, 0.008333, 0], abs=1e-6)


def test_the_best_by_own_validation_lies_between_one_attempt_and_the_oracle() -> None:
    honest = [row("a", 0, 0.95, validation=0.9), row("a", 1, 0.4, validation=0.3), row("a", 2, 0.4, validation=0.2)]
    found = attempts(honest, MEASURES["any_medal"])
    assert found is not None and found.chosen is not None
    assert found.chosen == pytest.approx((100 / 3, 200 / 3, 100))
    assert found.any_of == pytest.approx(found.chosen)
    deceived = [row("a", 0, 0.95, validation=0.1), row("a", 1, 0.4, validation=0.3), row("a", 2, 0.4)]
    found = attempts(deceived, MEASURES["any_medal"])
    assert found is not None
    assert found.chosen == pytest.approx((100 / 3, 100 / 3, 0))  # of two, the run without a measurement loses to it


def test_medals_over_time_and_the_time_to_the_first() -> None:
    early = (Version(1800, 0.95, True), Version(3600, 0.6, True), Version(7200, 0.92, True))
    rows = [row("a", 0, 0.92, hours=2.0, versions=early), row("b", 0, None, hours=1.0)]
    curve = over_time(rows)
    assert curve is not None
    by_hour = {round(x, 2): y for x, y in zip(curve.x, curve.y, strict=True)}
    assert (curve.x[-1], curve.y[0], curve.y[-1]) == (2.0, 0, 50)
    assert [by_hour[min(by_hour, key=lambda x: abs(x - hour))] for hour in (0.75, 1.5)] == [50, 0]
    assert curve.area == pytest.approx(50 * 0.5 / 2, abs=1)
    survival = time_to_medal(rows)
    assert survival is not None
    assert (survival.medals, survival.runs, survival.hours[0], survival.share[0]) == (1, 2, 0.5, 50)
    assert survival.median == 0.5


def test_a_version_before_the_first_call_of_a_model_cost_nothing() -> None:
    kept = [{"time": f"2026-11-21T10:0{minute}:00+00:00", "seconds": 60 * minute} for minute in (1, 3)]
    call = {"timestamp": "2026-11-21T10:02:00+00:00", "metrics": {"cost_usd": 0.5}}
    versions = (Version(60, 0.6, True), Version(180, 0.95, True))
    told, _ = with_rollout({"steps": [call], "extra": {"mleredux": {"submissions": kept}}}, versions)
    assert [version.cost_usd for version in told] == [0.0, 0.5]
    curve = over_cost([row("a", 0, 0.95, cost_usd=0.5, versions=told)])
    assert curve is not None and (curve.x[-1], curve.y[0], curve.y[-1]) == (0.5, 0, 100)
    free, _ = with_rollout({"steps": [], "extra": {"mleredux": {"submissions": kept}}}, versions)
    assert [version.cost_usd for version in free] == [None, None]


def test_submissions_of_unknown_time_are_not_taken_for_failures() -> None:
    unknown = row("a", 0, 0.95, hours=2.0)
    assert [measure(f"any_medal@{time}").of(unknown) for time in ("1h", "2h")] == [None, 100]
    known = row("b", 0, 0.95, hours=2.0, versions=(Version(1800, 0.95, True),))
    assert over_time([unknown, known]) == over_time([known]) and time_to_medal([unknown, known]) == time_to_medal(
        [known]
    )


def test_variants_of_a_competition_are_its_triple() -> None:
    """Published, repaired and re-split: paired by competition, in differences, ranks and failures."""
    names = {"": "published", "+fixed": "fixed", "+private": "private"}
    fell = (Finding("overfitting", "measured 0.9, scored 0.1", "report.json"),)
    rows = [
        replace(
            row(f"{task}{variant}", seed, 0.4 if variant == "+private" else 0.95, findings=fell if variant else ()),
            arm=arm,
        )
        for variant, arm in names.items()
        for task in ("digits", "wine", "diabetes")
        for seed in range(2)
    ]
    found = analyse(Results(tuple(rows)), arms=list(names.values()))
    assert [(one.b, one.difference, len(one.tasks)) for one in found.comparisons] == [
        ("fixed", 0, 3),
        ("private", -100, 3),
    ]
    assert [(one.failures[0].category, one.failures[0].difference) for one in found.comparisons] == [
        ("overfitting", 100)
    ] * 2
    assert [(one.arm, one.rank) for one in found.ranking] == [("published", 1), ("fixed", 1), ("private", 3)]


def test_selection_measures_optimism_and_regret() -> None:
    versions = (Version(1, 0.95, True, validation=0.7), Version(2, 0.7, True, validation=0.9))
    found = selection([row("a", 0, 0.7, validation=0.9, versions=versions)])
    assert found is not None
    assert (found.gap, found.regret) == pytest.approx((0.2 / 0.4, 0.25 / 0.4))
    assert (found.medals, found.oracle) == (0, 100)
    lower = Row(
        "r", "x", "x", "t", 0, score=0.3, valid=True, lower_is_better=True, gold=0.1, median=0.5, validation=0.2
    )
    found = selection([lower])
    assert found is not None and found.gap == pytest.approx(0.1 / 0.4)


def test_medals_per_dollar_are_a_ratio_of_sums() -> None:
    rows = [row("a", 0, 0.95, cost_usd=1.0), row("a", 1, 0.1, cost_usd=2.0), row("b", 0, 0.95, cost_usd=5.0)]
    found = medals_per_dollar(rows)
    assert found is not None and found[0] == pytest.approx(2 / 8)
    assert found[1] == pytest.approx(np.sqrt(0.5 * 2 * ((1 / 5 - 1 / 3) / 2) ** 2))


def test_ranking_finds_the_order_and_owns_up_to_ties() -> None:
    rng = np.random.default_rng(3)
    strengths = {"weak": 0.1, "strong": 0.9, "middle": 0.5, "twin": 0.5}
    table = {arm: {f"t{n}": 100.0 * (rng.random(6) < p) for n in range(22)} for arm, p in strengths.items()}
    table["twin"] = table["middle"]
    found = ranking(table, share=True)
    assert [one.arm for one in found] == ["strong", "middle", "twin", "weak"]
    assert [one.rank for one in found] == [1, 2, 2, 4]
    assert found[0].best == 1 and found[0].strength > found[1].strength == pytest.approx(found[2].strength, rel=1e-3)
    abilities = [one.ability for one in found]
    assert abilities[0] is not None and abilities[3] is not None and abilities[0] > 1 > -1 > abilities[3]
    values = [np.array([1.0, 2, 3, 4]), np.array([5.0, 6, 7, 100])]
    assert interquartile_mean(values) == 4.5
    assert list(profile(values, np.array([0.0, 4.0, 50.0]))) == [100, 50, 12.5]


@pytest.fixture
def runs(add_run: AddRun, tmp_path: Path) -> Path:
    for task in ("digits", "wine", "diabetes"):
        for seed in range(3):
            versions = [
                {"seconds": 5 + seed, "score": 0.7, "valid": True},
                {"seconds": 20, "score": 0.95, "valid": True},
            ]
            add_run(task, "good", seed, medal="gold", score=0.95, versions=versions)
            add_run(task, "ba|d_%", seed, score=0.4 + seed / 100, versions=versions[:1])
    add_run("digits", "ba|d_%", 3, state="failed", cause="environment_broke")
    return tmp_path / "runs"


def test_an_analysis_is_one_document(runs: Path) -> None:
    found = analyse(load(runs), arms=["ba|d_%", "good"])
    assert found.comparisons[0].wins == 3 and found.baseline == "ba|d_%"
    assert found.arm("ba|d_%").outcomes == {"valid": 9, "environment broke": 1}
    assert found.arm("good").deterministic and not found.arm("ba|d_%").deterministic
    assert found.compare("good", "ba|d_%", "percentile").losses == 3
    assert set(found.frame["arm"]) == {"good", "ba|d_%"}
    json.dumps(found.record(), allow_nan=False)
    with pytest.raises(MlereduxError, match="no runs"):
        analyse(load(runs).where(["seed=9"]))


def test_the_page_is_offline_and_answers_its_questions(runs: Path, tmp_path: Path) -> None:
    report = ["experiment", "report", str(runs), "--measure", "any_medal", "-o"]
    done = CliRunner().invoke(root, [*report, str(tmp_path / "out"), "--png", "--json"])
    files = [Path(name) for name in json.loads(done.stdout)["files"]]
    page = files[0].read_text()
    assert {"differences.svg", "differences.png", "time.svg", "attempts.svg", "outcomes.svg"} <= {
        one.name for one in files
    }
    assert "good wins 3 and loses 0 of 3 tasks" in page and page.count("<svg") >= 5
    assert not [mark for mark in ("src=", "@import", "<link", "<script") if mark in page]
    assert "On which tasks is good better than ba|d_%?" in page
    again = CliRunner().invoke(root, [*report, str(tmp_path / "again")])
    assert again.exit_code == 0 and (tmp_path / "again" / "report.html").read_text() == page


def test_exports_hold_the_same_figures(runs: Path, tmp_path: Path) -> None:
    import pandas as pd

    def export(form: str, name: str) -> Path:
        done = CliRunner().invoke(root, ["experiment", "export", str(runs), "--to", form, "-o", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
        return tmp_path / name

    frame = pd.read_parquet(export("parquet", "runs.parquet"))
    assert (len(frame), int(frame["counts"].sum())) == (19, 18)
    assert list(pd.read_csv(export("csv", "tables") / "runs.csv")["run"]) == list(frame["run"])
    assert r"ba|d\_\%" in export("latex", "tables.tex").read_text()
    assert r"ba\|d_%" in export("markdown", "tables.md").read_text()
    assert json.loads(export("json", "analysis.json").read_text())["measure"] == "percentile"


def test_published_reports_become_rows_like_ones_own(shared: Path, tmp_path: Path) -> None:
    origin = shared / "reports" / "impulse-ai_mlebench-medals"
    for _ in range(2):  # twice is as good as once
        reports = [str(origin / f"grading_report_run{number}.json") for number in (1, 2, 3)]
        done = CliRunner().invoke(root, ["experiment", "import", *reports, "--output", str(tmp_path / "board")])
        assert done.exit_code == 0, done.output
    board = CliRunner().invoke(root, ["leaderboard", "--reports", str(tmp_path / "board"), "--json"])
    (one,) = json.loads(board.stdout)
    assert (one["name"], one["runs"]) == ("impulse-ai_mlebench-medals", 3)
    assert one["splits"]["low"]["gold"]["sem"] == pytest.approx(1.5151515151515156)
    (tmp_path / "list.json").write_text(
        json.dumps(json.loads((origin / "official_competition_reports.json").read_text())[:5])
    )
    single = [str(tmp_path / "list.json"), "--name", "single"]
    done = CliRunner().invoke(root, ["experiment", "import", *single, "--output", str(tmp_path / "board")])
    assert done.exit_code == 0, done.output
    board = json.loads(CliRunner().invoke(root, ["leaderboard", "--reports", str(tmp_path / "board"), "--json"]).stdout)
    assert {one["name"]: one["runs"] for one in board} == {"impulse-ai_mlebench-medals": 3, "single": 1}
    done = CliRunner().invoke(root, ["experiment", "import", str(origin), "--output", str(tmp_path / "other")])
    assert "is not an MLE-bench grading report" in str(done.exception) and not (tmp_path / "other").exists()


def test_submissions_are_graded_when_they_are_imported(tmp_path: Path) -> None:
    sample = CliRunner().invoke(root, ["prepare", "wine", "--data-dir", str(tmp_path / "data")])
    assert sample.exit_code == 0
    submission = tmp_path / "seed-0" / "wine" / "submission.csv"
    submission.parent.mkdir(parents=True)
    submission.write_bytes((tmp_path / "data" / "wine" / "prepared" / "public" / "sample_submission.csv").read_bytes())
    folder, into = str(submission.parents[1]), str(tmp_path / "board")
    data = ["--data-dir", str(tmp_path / "data")]
    done = CliRunner().invoke(root, ["experiment", "import", folder, "--output", into, "--name", "sample", *data])
    assert done.exit_code == 0, str(done.exception)
    (one,) = json.loads(CliRunner().invoke(root, ["leaderboard", "--reports", into, "--json"]).stdout)
    assert (one["name"], one["splits"]["all"]["valid"]["mean"]) == ("sample", 100)


def test_power_tells_what_is_lacking(runs: Path) -> None:
    def power(*arguments: str) -> Any:
        return CliRunner().invoke(root, ["power", *arguments])

    miller = json.loads(power("--between", "33.3333333", "--difference", "3", "--seeds", "1", "--json").output)
    assert (
        miller["needed"]["tasks"] == 971
    )  # 969 by the normal approximation (Miller 2024, arXiv:2411.00640, section 5)
    lite = power("--between", "24.4949", "--within", "28.2843", "--tasks", "22", "--seeds", "3", "--difference", "10")
    assert re.search(r"^22 tasks with 3 seeds detect 2[123]\.?\d* points", lite.output)
    assert "tasks would detect it." in lite.output and "seeds a task" not in lite.output
    few = power("--between", "24", "--tasks", "5").output
    assert "5 tasks with 3 seeds detect no possible difference" in few and "at 5 % needs 6 tasks or more" in few
    assert "detect" in power("good", "ba|d_%", "--measure", "percentile", "--runs-dir", str(runs)).output
    assert power().exit_code == 2
    still = power("--between", "0", "--difference", "3")
    assert still.exit_code != 0 and "do not vary in any_medal" in str(still.exception)
    for name, most in (("percentile", "100.1"), ("any_medal", "150"), ("technique_use", "1.5")):
        beyond = power("--between", "1", "--difference", most, "--measure", name)
        assert beyond.exit_code == 2 and f"differ in {name} by at most 1" in beyond.output
    assert power("--between", "1", "--tasks", "1").output.startswith("1 task with 3 seeds detects no possible")


KINDS = ("percentile", "thresholds", "thresholds of several metrics", "scores", "scores of several metrics")
NEED_LEADERBOARDS = ("above_median", "bronze", "silver", "gold", "any_medal", "any_medal@2h")


@pytest.mark.parametrize("failing", [set(), {("a", 0)}, {("a", 0), ("a", 1)}])
@pytest.mark.parametrize("kind", KINDS)
def test_all_analyses_agree_on_which_measures_are_possible(
    add_run: AddRun, tmp_path: Path, kind: str, failing: set[tuple[str, int]]
) -> None:
    for number in range(3):
        graded = {"metric": f"metric{number}"} if "several" in kind else {}
        graded |= {} if kind == "percentile" else {"percentile": None}
        if kind.startswith("scores"):
            graded |= dict.fromkeys(f"{name}_threshold" for name in ("gold", "silver", "bronze", "median"))
        for agent, score in (("a", 0.5), ("b", 0.7)):
            for seed in (0, 1):
                own = None if (agent, seed) in failing else score + number / 50 + seed / 100
                add_run(f"t{number}", agent, seed, score=own, graded=graded)
    results = load(tmp_path / "runs")
    without = kind == "scores of several metrics" or (kind == "scores" and len(failing) == 2)  # arm a has no score
    for name in (None, *NEED_LEADERBOARDS, "percentile", "gap_to_median", "valid", "hours"):
        analysis = analyse(results, name)
        what = measure(analysis.measure)
        try:
            refused, sentence = False, compare(results, "a", "b", name).sentence
        except Immeasurable as error:
            refused, sentence = True, str(error)
        assert [*analysis.sentences, *analysis.notes] == [sentence], (name, analysis)
        assert (what.name in analysis.arm("b").estimates) == bool(analysis.ranking) == (what.averaged and not refused)
        if what.averaged and not refused:
            means = [analysis.arm(arm).estimates[what.name].mean for arm in "ab"]
            (pair,) = analysis.comparisons
            assert pair.difference == pytest.approx((means[1] - means[0]) * (-1 if what.lower else 1), abs=1e-9), name
        lacking = kind.startswith("scores") and name in (*NEED_LEADERBOARDS, "gap_to_median")
        lacking |= kind != "percentile" and name == "percentile"
        assert refused == (lacking or (name is None and without)), (name, sentence)
        if refused:
            with pytest.raises(Immeasurable, match=re.escape(sentence)):
                leaderboard(results, by=what.name)
            assert decision(_sequential(what.name), results, 2) is None


def _sequential(primary: str) -> Plan:
    design = {"name": "plan", "tasks": ["t0", "t1", "t2"], "seeds": [0, 1], "primary": primary}
    arms = {name: {"agent": name} for name in "ab"}
    return make_plan({"experiment": design, "stop": {"rule": "sequential"}, "arms": arms})


def test_tasks_without_a_leaderboard_have_scores_but_no_summary(add_run: AddRun, tmp_path: Path) -> None:
    runs = str(tmp_path / "runs")
    compared, analysed = ["compare", "x", "y", "--runs-dir", runs], ["experiment", "analyse", runs]
    for task, lower in (("up", False), ("down", True)):
        graded = {"percentile": None, "metric": task, "is_lower_better": lower}
        graded |= {f"{name}_threshold": None for name in ("gold", "silver", "bronze", "median")}
        add_run(task, "x", 0, score=0.5, graded=graded)
        add_run(task, "y", 0, score=0.6, graded=graded)
    shown, listed = CliRunner().invoke(root, compared), CliRunner().invoke(root, analysed)
    assert shown.exit_code == 0 and "wins" not in shown.output, "medals that do not exist are not compared"
    assert CliRunner().invoke(root, [*compared, "--ci"]).exit_code == 13
    for done in (shown, listed):
        lines = [line.split()[:6] for line in done.output.splitlines() if line.startswith(("up", "down"))]
        assert lines == [
            ["down", "*", "0.50000", "(1)", "0.60000", "(1)"],
            ["up", "0.50000", "(1)", "*", "0.60000", "(1)"],
        ]
    sentence = "These tasks have no leaderboard, and scores of different metrics can't be averaged."
    assert sentence in shown.output and listed.output.startswith(sentence)
    record = json.loads(CliRunner().invoke(root, [*compared, "--json"]).output)
    assert record["sentence"].startswith(sentence) and record["verdict"] == "cannot tell"
    assert [(task["task"], task["better"]) for task in record["table"]] == [("down", "x"), ("up", "y")]
    assert "medal" not in listed.output.replace("percentile  medals", ""), "nor are they counted"
    alone = json.loads(CliRunner().invoke(root, [*compared, "--where", "task=up", "--json"]).output)
    assert (alone["measure"], alone["wins"]) == ("score", 1)


def test_a_failure_on_a_task_without_a_leaderboard_is_no_percentile_of_zero(add_run: AddRun, tmp_path: Path) -> None:
    for seed, score in enumerate((0.6, None)):
        add_run("ranked", "x", seed, score=0.6)
        add_run("unranked", "x", seed, score=score, graded={"percentile": None})
        add_run("failed", "x", seed)
    (arm,) = analyse(load(tmp_path / "runs")).arms
    assert (arm.estimates["percentile"].mean, arm.estimates["percentile"].tasks) == (pytest.approx(30), 2)
