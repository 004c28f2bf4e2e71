"""`mleredux compare` and `leaderboard` on runs as they lie on disk."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux.errors import MlereduxError
from mleredux_experiments.analysis.analysis import analyse
from mleredux_experiments.analysis.leaderboard import leaderboard
from mleredux_experiments.figures.tables import analysis_tables, leaderboard_tables
from mleredux_experiments.inference.comparison import compare
from mleredux_experiments.inference.errors import Interval
from mleredux_experiments.results.sources import load, runs_below
from mleredux_experiments.results.table import Results, Row

AddRun = Callable[..., Path]


@pytest.fixture
def mleredux(tmp_path: Path) -> Callable[..., Any]:
    def call(*arguments: str) -> Any:
        return CliRunner().invoke(root, [*arguments, "--runs-dir", str(tmp_path / "runs")])

    return call


def two_agents(add_run: AddRun, wins: int = 7, losses: int = 2, tasks: int = 22, seeds: int = 3) -> None:
    """`v2` gets a medal on `wins` tasks where `v1` gets none, and the reverse on `losses`."""
    for number in range(tasks):
        for seed in range(seeds):
            medal = {"medal": "gold", "score": 0.95}
            none: dict[str, Any] = {"score": 0.6}
            add_run(f"task{number:02d}", "v1", seed, **(medal if number < losses else none))
            add_run(f"task{number:02d}", "v2", seed, **(medal if losses <= number < losses + wins else none))


def test_scores_come_first_then_the_sentence_and_the_keys_are_as_promised(
    add_run: AddRun, mleredux: Callable[..., Any]
) -> None:
    two_agents(add_run)
    table, _, rest = mleredux("compare", "v1", "v2", "--measure", "any_medal").output.partition("\n\n")
    assert table.startswith("Scores: ") and len(table.splitlines()) == 2 + 22
    assert table.splitlines()[2].split("  ")[:2] == ["task00", "* 0.95000 ± 0.00000 (3)"]
    text = rest.splitlines()[0]
    assert text.startswith("v2 wins 7 and loses 2 of 22 tasks; +22.7 points, 95 % ")
    kinds = [re.split(r"[:;,]", line)[0] for line in rest.partition("\n\n")[2].partition("\n\n")[0].splitlines()]
    assert len(kinds) == len(set(kinds)), "one sentence of each kind"
    assert "do not depend on the seed: v1, v2." in rest
    assert "undecided; 22 tasks detect 4" in text and text.endswith(" points with a power of 80 %.")
    found = json.loads(mleredux("compare", "v1", "v2", "--measure", "any_medal", "--json").output)
    keys = ("difference", "low", "high", "p", "wins", "ties", "losses", "verdict", "detectable", "sentence")
    assert all(key in found for key in keys)
    assert (found["wins"], found["ties"], found["losses"], found["verdict"]) == (7, 13, 2, "undecided")
    assert found["difference"] == pytest.approx(100 * 5 / 22)
    assert found["low"] < 0 < found["high"]
    assert found["p"] == pytest.approx(0.1796875)  # 9 signs, |sum| >= 5: 92 of 512
    assert found["level"] == pytest.approx(0.95) and found["difference"] < found["detectable"] < 100
    assert sorted(found["deterministic"]) == ["v1", "v2"]
    best = found["table"][0]
    assert (best["task"], best["better"], best["arms"][0]["mean"], best["arms"][1]["medals"]) == (
        "task00",
        "v1",
        pytest.approx(0.95),
        0,
    )
    back = json.loads(mleredux("compare", "v2", "v1", "--measure", "any_medal", "--json").output)
    assert back["difference"] == pytest.approx(-found["difference"])
    assert (back["wins"], back["losses"], back["p"]) == (2, 7, found["p"])


@pytest.mark.parametrize(
    ("wins", "losses", "margin", "verdict", "code"),
    [
        (9, 0, "0", "better", 0),
        (0, 0, "15", "equivalent", 10),
        (3, 1, "15", "not worse", 10),
        (3, 1, "12", "undecided", 11),
        (3, 2, "0", "undecided", 11),
        (0, 9, "0", "worse", 12),
    ],
)
def test_exit_codes_tell_the_verdict(
    add_run: AddRun, mleredux: Callable[..., Any], wins: int, losses: int, margin: str, verdict: str, code: int
) -> None:
    two_agents(add_run, wins, losses, seeds=2)
    assert mleredux("compare", "v1", "v2", "--measure", "any_medal", "--margin", margin, "--ci").exit_code == code
    done = mleredux("compare", "v1", "v2", "--measure", "any_medal", "--margin", margin, "--json")
    assert (done.exit_code, json.loads(done.output)["verdict"]) == (0, verdict)


def test_equivalence_is_asked_first_where_it_is_the_question(add_run: AddRun, tmp_path: Path) -> None:
    for number in range(12):  # better by about a point on every task: surely a difference, and surely a small one
        for seed in range(2):
            for agent, gain in (("v1", 0.0), ("v2", 0.01 + number % 3 / 1000)):
                add_run(f"task{number}", agent, seed, score=0.5 + number / 100 + gain + seed / 1000)
    results = load(tmp_path / "runs")
    verdicts = {
        (margin, asked): compare(results, "v1", "v2", "percentile", margin=margin, equivalence=asked).verdict
        for margin, asked in ((3, False), (3, True), (0.5, True), (1.1, True))
    }
    assert verdicts == {(3, False): "better", (3, True): "equivalent", (0.5, True): "better", (1.1, True): "undecided"}
    alike = results.where(["agent=v1"])
    both = alike.keep([*alike.rows, *(replace(row, arm="v2") for row in alike.rows)])
    same = compare(both, "v1", "v2", "percentile", margin=3, equivalence=True)  # (1 - 0.03)^12 > 0.05
    assert (same.verdict, same.equivalence) == ("undecided", pytest.approx(0.97**12, abs=0.01))
    with pytest.raises(MlereduxError, match="requires a margin"):
        compare(results, "v1", "v2", equivalence=True)


def test_the_usual_measure_is_the_percentile_where_there_is_a_leaderboard(
    add_run: AddRun, mleredux: Callable[..., Any]
) -> None:
    def measure() -> str:
        return str(json.loads(mleredux("compare", "x", "y", "--json").output)["measure"])

    no_board = {"percentile": None}
    rmse = {"percentile": None, "metric": "rmse", "is_lower_better": True}
    for seed in range(2):
        add_run("a", "x", seed, score=0.5, graded=no_board)
        add_run("a", "y", seed, score=0.6 + seed / 10, graded=no_board)
    assert measure() == "score"
    for seed in range(2):
        add_run("b", "x", seed, score=0.5, graded=rmse)
        add_run("b", "y", seed, score=0.6 + seed / 10, graded=rmse)
    assert measure() == "any_medal", "scores of two metrics are not averaged"
    for seed in range(2):
        add_run("c", "x", seed, score=0.5)
        add_run("c", "y", seed, state="failed", cause="agent_crashed")
    assert measure() == "any_medal", "no valid run of y on a task with a leaderboard"
    for seed in range(2):
        add_run("d", "x", seed, score=0.5)
        add_run("d", "y", seed, score=0.6)
    assert measure() == "percentile"
    told = mleredux("compare", "x", "y").output
    assert "8 without percentile" in told and "Measure: percentile" in told
    lines = told.splitlines()
    assert lines[3].startswith("b ") and lines[3].count("*") == 1 and "* 0.50000 ± 0.00000 (2)" in lines[3]
    assert "– (0 of 2)" in lines[4] and "* 0.50000" in lines[4]


def test_scores_that_are_infinite_are_counted_where_they_are_left_out(
    add_run: AddRun, mleredux: Callable[..., Any]
) -> None:
    for seed in range(3):
        add_run("a", "x", seed, score=0.5)
        add_run("a", "y", seed, score=None if seed == 2 else 0.7, graded={"valid_submission": True})
    add_run("a", "y", 3, state="failed", cause="agent_crashed")
    told = mleredux("compare", "x", "y", "--measure", "score").output
    assert "1 infinite or undefined scores, 1 without score" in told
    assert "  0.70000 ± 0.00000 (2 of 4)" in told and "*" not in told.splitlines()[2], "x fails less often"


def test_an_agent_with_several_settings_has_a_row_for_each(
    add_run: AddRun, mleredux: Callable[..., Any], tmp_path: Path
) -> None:
    """Their names select the same runs in `compare`."""
    for number in range(6):
        add_run(f"t{number}", "forest", 0, score=0.6)
        add_run(f"t{number}", "forest", 1, score=0.95, medal="gold", options={"model": {"kind": "ridge"}, "deep": True})
    add_run("t0", "forest", 2, state="cancelled", cause="cancelled")
    names = ["forest[kind=ridge,deep=true]", "forest[kind=none,deep=none]"]
    assert [one["name"] for one in json.loads(mleredux("leaderboard", "--json").output)] == names
    found = json.loads(mleredux("compare", *reversed(names), "--json").output)
    assert (found["wins"], found["losses"]) == (6, 0)
    told = CliRunner().invoke(root, ["experiment", "analyse", str(tmp_path / "runs"), "--json", "--baseline", names[0]])
    assert [one["name"] for one in json.loads(told.output)["arms"]] == names, told.output


def test_cancelled_runs_have_no_settings_to_mix(add_run: AddRun, tmp_path: Path) -> None:
    two_agents(add_run, tasks=6, seeds=1)
    add_run("task00", "v2", 9, state="cancelled", cause="cancelled", limits={"time_limit": 5.0})
    assert compare(load(tmp_path / "runs"), "v1", "v2").left_out == {"cancelled": 1}


@pytest.mark.parametrize(("hours", "unit", "shown"), [(0.002, "seconds", 7.2), (0.25, "minutes", 15), (3, "hours", 3)])
def test_times_have_fitting_units_everywhere(hours: float, unit: str, shown: float) -> None:
    rows = []
    for arm, size in (("a", 0.8), ("b", 1.0)):
        for task, seed in [(task, seed) for task in range(6) for seed in range(2)]:
            took = hours * size * (1 - 0.01 * task - 0.001 * seed)
            times = {"hours": took, "paused_hours": hours / 4 if arm == "b" else 0.0}
            rows.append(Row(f"{arm}{task}{seed}", arm, arm, f"t{task}", seed, valid=True, percentile=9.0, **times))
    found = analyse(Results(tuple(rows)), "hours")
    tables = {table.title: table for table in analysis_tables(found)}
    lines = {line[0]: line for title, table in tables.items() if title.startswith("Measures") for line in table.rows}
    assert float(lines[f"time, {unit}"][2].split()[0]) == pytest.approx(shown * 0.9745, abs=0.01)
    assert float(lines[f"working time, {unit}"][2].split()[0]) == pytest.approx(shown * 0.7245, abs=0.01)
    limits = next(table for title, table in tables.items() if title.startswith(f"Time, {unit}, tasks like these"))
    assert limits.rows[1][1] == pytest.approx(shown * 0.9745)
    (two,) = found.comparisons
    assert f" {unit}, 95 %" in two.sentence or f" {unit}, 96" in two.sentence
    assert " h," not in two.sentence and any(title.endswith(f"in {unit}") for title in tables)
    board = leaderboard_tables(leaderboard(found.results, by="hours"), "hours")
    assert board[0].title.startswith(f"Time, {unit}") and board[0].rows[0][0] == "a"
    assert board[1].rows[0][2] == pytest.approx(shown * 0.9745 * 0.8)


def test_bad_input_gets_a_sentence(add_run: AddRun, mleredux: Callable[..., Any], tmp_path: Path) -> None:
    add_run("a", "x", 0, score=0.9)
    add_run("b", "y", 0, score=0.9)
    broken = tmp_path / "runs" / "20261122-130000-a-x-000001"
    broken.mkdir()
    (broken / "run.json").write_text('{"spec": 3}')
    for arguments, sentence in [
        (("compare", "x", "z"), "There is no arm or agent 'z'"),
        (("compare", "x", "x"), "x is compared with itself"),
        (("compare", "x", "y"), "no common task"),
        (("compare", "x", "y", "--measure", "luck"), "There is no measure 'luck'"),
        (("leaderboard", "--where", "seed"), "is not of the form FIELD=VALUE"),
        (("leaderboard", "--measure", "any_medal@soon"), "'soon' is not a valid time"),
    ]:
        done = mleredux(*arguments)
        assert done.exit_code != 0
        assert sentence in str(done.exception) + done.output
    assert "which can't be read (AttributeError)." in mleredux("leaderboard").stderr


def test_a_damaged_report_is_no_failure_of_its_agent(
    add_run: AddRun, mleredux: Callable[..., Any], tmp_path: Path
) -> None:
    sound = json.loads((add_run("a", "x", 0, score=0.9, medal="gold") / "report.json").read_text())
    texts = ["{", "{}", "[]", "null", "", "[" * 100_000]
    texts += [json.dumps({key: value for key, value in sound.items() if key != name}) for name in ("score", "metric")]
    changes = [{"score": "x"}, {"submission_exists": None}, {"gold_threshold": [1]}, {"ledger": 7}, {"verdict": "ok"}]
    texts += [json.dumps({**sound, **change}) for change in changes]
    damaged = {add_run("a", "x", seed + 1, score=0.9, medal="gold"): text for seed, text in enumerate(texts)}
    for run, text in damaged.items():
        (run / "report.json").write_text(text)
    (missing := add_run("a", "x", 90)).joinpath("report.json").unlink()
    results = runs_below(tmp_path / "runs")
    assert [row.seed for row in results.rows] == [0] and results.rows[0].medal == "gold"
    assert {left.run for left in results.left} == {run.name for run in (*damaged, missing)}
    assert "which can't be read (ValidationError)" in mleredux("leaderboard").stderr


def test_what_is_left_out_is_told_once_and_of_the_runs_asked_for_only(
    add_run: AddRun, mleredux: Callable[..., Any], tmp_path: Path
) -> None:
    for agent in ("x", "y", "z"):
        run = add_run("a", agent, 0, score=0.9)
        for number in range(7 if agent == "z" else 0):
            shutil.copytree(run, tmp_path / "runs" / f"copy-{number}")
    found = runs_below(tmp_path / "runs")
    sentence = "Left out: copy-0 and 6 more, a copy of another run, or renamed."
    assert found.remarks() == found.where(["agent=z"]).remarks() == found.remarks(["x", "z[seed=0]"]) == [sentence]
    assert found.where(["agent=x"]).remarks() == found.remarks(["x", "y"]) == []
    assert "Left out" not in mleredux("compare", "x", "y").stderr
    assert sentence in mleredux("compare", "x", "z").stderr and sentence in mleredux("leaderboard").stderr
    assert sentence in mleredux("experiment", "analyse", str(tmp_path / "runs")).output
    assert "Left out" not in mleredux("experiment", "analyse", str(tmp_path / "runs"), "--where", "agent=x").output


def test_published_rows_are_peers_of_ones_own(
    add_run: AddRun, mleredux: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLEREDUX_RUNS_DIR", raising=False)
    (alone,) = json.loads(CliRunner().invoke(root, ["leaderboard", "--published", "--json"]).output)
    assert alone["splits"]["low"]["any_medal"]["mean"] == pytest.approx(1900 / 22)
    for seed in range(2):
        add_run("aerial-cactus-identification", "mine", seed, score=0.99, version="1")
    names = [one["name"] for one in json.loads(mleredux("leaderboard", "--published", "--json").output)]
    assert sorted(names) == [alone["name"], "mine"]
    found = json.loads(mleredux("compare", "mine", alone["name"], "--published", "--json").output)
    assert (found["wins"], found["difference"], found["left_out"]["tasks of one arm only"]) == (1, 100, 21)
    assert found["notes"] == [f"The limits of {alone['name']} are not known."]


def test_a_name_without_a_version_means_the_newest_and_says_so(
    add_run: AddRun, mleredux: Callable[..., Any], tmp_path: Path
) -> None:
    versions = {hash_: f"repo:/home/ada/a.py@copy-{hash_ * 10}" for hash_ in ("bbbb", "aaaa")}
    for day, agent in enumerate(versions.values()):
        path = add_run("a", agent, 0, score=0.5 + day / 10)
        later = path.with_name(path.name.replace("20261122", f"2026112{3 + day}"))
        (path / "run.json").write_text((path / "run.json").read_text().replace(path.name, later.name))
        path.rename(later)
    add_run("a", "other", 0, score=0.7)
    results = load(tmp_path / "runs")
    assert {row.score for row in results.arm("a.py")} == {0.6}
    newest = next(arm for arm, rows in results.arms.items() if rows[0].agent == versions["aaaa"])
    oldest = next(arm for arm, rows in results.arms.items() if rows[0].agent == versions["bbbb"])
    said = mleredux("compare", "other", "a.py", "--measure", "score")
    assert said.exit_code == 0 and f"a.py names 2 versions; the newest, {newest}, is used." in said.output
    assert "names 2 versions" not in mleredux("compare", oldest, newest, "--measure", "score").output
    assert results.note_on("a.py[seed=0]") and results.note_on("other") is None and results.note_on("absent") is None


def test_with_several_arms_the_corrected_p_decides(add_run: AddRun, tmp_path: Path) -> None:
    for number in range(6):
        for arm, gain in (("base", 0.0), ("good", 0.1), ("fine", 0.05), ("same", 0.0)):
            add_run(f"task{number}", arm, 0, score=0.4 + number / 50 + gain * (1 + number / 10))
    results = load(tmp_path / "runs")
    assert compare(results, "base", "good", "percentile").verdict == "better"  # p = 2/64
    found = analyse(results, "percentile", arms=["base", "good", "fine", "same"])
    assert [one.b for one in found.comparisons] == ["good", "fine", "same"]
    for one in found.comparisons:
        assert one.adjusted is not None and one.adjusted >= min(3 * one.p, 1) - 1e-9
        assert one.verdict == "cannot tell" and "better" not in one.sentence
        assert one.least == 7 and one.alpha == pytest.approx(0.05 / 3)
    assert found.arm("good").attempts is None, "of percentiles, several attempts are not asked"


@pytest.mark.parametrize("known", ["percentile", "score", "any_medal", "reward"])
def test_all_commands_have_the_same_default_measure(
    add_run: AddRun, mleredux: Callable[..., Any], tmp_path: Path, known: str
) -> None:
    for number, task in enumerate(("x", "y", "z")):
        metric = f"metric{number}" if known == "any_medal" else "accuracy"
        graded = {"metric": metric} | ({} if known == "percentile" else {"percentile": None})
        for agent, score in (("a", 0.5), ("b", 0.7)):
            medal = "bronze" if score > 0.6 + number / 10 else None
            for seed in (0, 1):
                name = f"{task}@wine" if known == "reward" else task
                add_run(name, agent, seed, score=score + number / 50 + seed / 100, medal=medal, graded=graded)
    runs = str(tmp_path / "runs")
    shown = {
        "compare": json.loads(mleredux("compare", "a", "b", "--json").output)["measure"],
        "analyse": json.loads(mleredux("experiment", "analyse", runs, "--json").output)["measure"],
        "analyse()": analyse(load(runs)).measure,
        "compare()": compare(load(runs), "a", "b").measure,
    }
    for form in ("report", "export"):
        options = ("-o", str(tmp_path / form), *(("--to", "json") if form == "export" else ()))
        assert mleredux("experiment", form, runs, *options).exit_code == 0
        file = tmp_path / form if form == "export" else tmp_path / form / "analysis.json"
        shown[form] = json.loads(file.read_text())["measure"]
    assert set(shown.values()) == {known}, shown
    whole = [mleredux(*command).output for command in (("power", "a", "b"), ("power", "a", "b", "--measure", known))]
    assert whole[0] == whole[1]
    of_tasks = "any_medal" if known == "score" else known
    boards = [mleredux("leaderboard", *options).output for options in ((), ("--measure", of_tasks))]
    assert boards[0] == boards[1]


@pytest.mark.parametrize("near", [1e-12, 0.03, 0.0499, 0.06])
@pytest.mark.parametrize("measure", ["percentile", "score"])
def test_an_interval_that_excludes_zero_never_ends_at_zero_in_print(measure: str, near: float) -> None:
    rows = [
        Row(f"{arm}{task}", arm, arm, f"task{task}", 0, valid=True, score=value + task, percentile=value + task)
        for arm, value in (("a", 1.0), ("b", 3.0))
        for task in range(8)
    ]
    comparison = compare(Results(tuple(rows)), "a", "b", measure)
    for low, high in ((near, 9.0), (-9.0, -near)):
        text = comparison.between(Interval(low, high, 0.95))
        limits = re.fullmatch(r"95 % (above )?(\S+) to (below )?(\S+)", text)
        assert limits is not None, text
        assert limits[1] or limits[3] or float(limits[2 if low > 0 else 4].replace("−", "-"))
        assert near < 0.05 or not (limits[1] or limits[3])
    assert comparison.between(Interval(0.0, 9.0, 0.95)).startswith("95 % 0")
