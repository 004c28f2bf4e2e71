"""What commands print of runs and reports: on terminals of any width, and of fields that nobody knew of."""

from __future__ import annotations

import ast
import io
import os
import re
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import mleredux
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux._core.cli.backend import RunView
from mleredux._core.cli.commands.runs import print_runs
from mleredux._core.cli.output import print_facts, print_table
from mleredux._core.cli.run_table import print_results
from mleredux.models import Report
from mleredux.models.formats import Shown, counted, facts, number, plain, score, text


class Richer(Report):
    """A report with one more field, declared and shown nowhere else."""

    carbon: Annotated[float | None, Shown("carbon", ("{carbon:.1f} g",), brief=True)] = None
    secret: str | None = None


GRADED: dict[str, Any] = {
    "competition_id": "digits",
    "score": 0.98765,
    "gold_threshold": 0.99,
    "median_threshold": 0.9,
    "silver_medal": True,
    "any_medal": True,
    "above_median": True,
    "submission_exists": True,
    "valid_submission": True,
    "is_lower_better": False,
    "created_at": datetime(2026, 11, 22, tzinfo=UTC),
    "submission_path": "submission.csv",
    "task_version": "1",
    "metric": "accuracy",
    "percentile": 82.4,
}
AGENT = f"repo:https://git.example/a-team/with/a/long/path/agent.git@{'0123456789' * 4}"
CAPTURES = Path(__file__).parent / "captures"
ID = "20261122-120000-spaceship-titanic-repo-c0ffee"


def view(report: Report | None, seed: int = 0, status: str = "done") -> RunView:
    return RunView("spaceship-titanic", AGENT, status, report, None, 9.5, f"runs/{ID}", {"seed": seed})


def test_a_field_of_the_report_is_declared_once_and_shown_everywhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    report = Richer(**GRADED, carbon=3.14, secret="not shown")
    for runs in ([view(report)], [view(report), view(Report(**GRADED), seed=1)]):
        print_results(runs)
        told = capsys.readouterr().out
        assert "carbon" in told and "3.1 g" in told and "0.98765 (accuracy)" in told and "silver" in told
        assert "not shown" not in told
    print_facts(dict(facts(report)))
    told = capsys.readouterr().out
    assert "carbon" in told and "3.1 g" in told and "higher is better" in told and "not shown" not in told


@pytest.mark.parametrize("width", [60, 80, 120])
def test_tables_fit_the_terminal_and_keep_what_matters(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    row = {"id": ID, "task": "spaceship-titanic", "agent": AGENT, "status": "failed", "score": 0.98765, "medal": None}
    print_runs([{**row, "seed": 1, "percentile": 61.2, "seconds": 75.0}])
    listed = capsys.readouterr().out
    print_results([view(Report(**GRADED)), view(None, status="failed", seed=1)])
    table = capsys.readouterr().out
    for told in (listed, table):
        assert max(len(line) for line in told.splitlines() if ": runs/" not in line) <= width
        assert "failed" in told and "0.98765" in told
    assert "c0ffee" in listed, "an id can be named by its end"
    assert "seed" in table and "silver" in table


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("folder", ["runs", "My Documents/runs (2)", "a/rather/long/folder/of/the/runs/of/a/team"])
def test_paths_of_runs_are_never_broken(
    width: int, count: int, folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    run = replace(view(Report(**GRADED)), artifacts=f"{folder}/{ID}", page=f"{folder}/{ID}/report.html")
    print_results([run] * count)
    shown = capsys.readouterr().out
    assert shown.count(run.artifacts) == 2 and (count > 1 or str(run.page) in shown), shown


@pytest.mark.parametrize(("paused", "working"), [(None, None), (0.0, None), (900.0, "45 min"), (3590.0, "10.0 s")])
def test_working_time_is_listed_beside_wall_time_where_a_clock_was_paused(
    paused: float | None, working: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    row = {"id": ID, "task": "wine", "agent": "aide", "status": "done", "seconds": 3600.0, "paused_seconds": paused}
    print_runs([row, {**row, "paused_seconds": 0.0}])
    head, first, second = capsys.readouterr().out.splitlines()
    assert ("WORKING" in head) == (working is not None)
    assert "1 h" in first and "1 h" in second and (working or "") in first
    assert working is None or working not in second


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_list_of_runs_is_as_approved(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a change that is meant: `MLEREDUX_APPROVE=1 pytest core/tests/test_core_display.py`, then inspect them."""
    monkeypatch.setenv("COLUMNS", str(width))
    row = {"task": "spaceship-titanic", "agent": AGENT, "seed": 0, "status": "done", "score": 0.98765, "medal": "gold"}
    row |= {"percentile": 61.2, "seconds": 75.0, "cost_usd": 0.125, "verdict": "verified", "cause": None, "id": ID}
    failed = {"status": "failed", "score": None, "medal": None, "percentile": None, "cause": "agent_crashed"}
    others: list[dict[str, Any]] = [
        {"seed": 1, **failed},
        {"task": "digits", "agent": "baseline", "cost_usd": None, "medal": None, "verdict": "not checked"},
        {"task": "jigsaw-unintended-bias-in-toxicity-classification", "agent": "human:ada", "seconds": 7201.0},
    ]
    print_runs([row, *({**row, **other} for other in others)])
    told, approved = capsys.readouterr().out, CAPTURES / f"runs-{width}.txt"
    if os.environ.get("MLEREDUX_APPROVE"):
        approved.write_text(told, encoding="utf-8")
    assert told == approved.read_text(encoding="utf-8")


def test_columns_without_room_are_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"name": "n" * 30, "score": 1, "percentile": 61.2, "medal": "gold"}
    for width, omitted in ((44, ["percentile", "medal"]), (80, [])):
        monkeypatch.setenv("COLUMNS", str(width))
        print_table([row], list(row))
        shown = capsys.readouterr()
        assert [name for name in row if name.upper() not in shown.out] == omitted
        assert all(name in " ".join(shown.err.split()) for name in omitted) and bool(shown.err) == bool(omitted)
        assert max(map(len, shown.out.splitlines())) <= width


@given(st.lists(st.decimals(-(10**6), 10**6, places=5).map(float) | st.none(), min_size=1, max_size=5))
def test_numbers_of_a_column_are_aligned_at_their_points(values: list[float | None]) -> None:
    with redirect_stdout(io.StringIO()) as shown:
        print_table([{"task": "digits", "score": value, "id": "x"} for value in values], ("task", "score", "id"))
    _head, *lines = shown.getvalue().splitlines()
    points = {line.index(".") for line in lines if "." in line}
    assert len(points) <= 1
    for value, line in zip(values, lines, strict=True):
        number = line.split()[1]
        assert number == "-" if value is None else float(number) == pytest.approx(value, rel=1e-4)


def test_scores_and_tokens_of_runs_are_aligned(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    row = {"id": ID, "task": "wine", "agent": "aide", "status": "done"}
    print_runs([{**row, "score": 0.83, "tokens": 18810}, {**row, "score": 12.5}, {**row, "score": None}])
    head, *lines = capsys.readouterr().out.splitlines()
    end = head.index("SCORE") + len("SCORE")
    assert [line[:end].split()[-1] for line in lines] == ["0.83000", "12.50000", "-"]
    assert "TOKENS" in head and "18810" in lines[0]
    print_runs([{**row, "score": 0.83, "tokens": None}])
    assert "TOKENS" not in capsys.readouterr().out


@given(st.floats(min_value=-1e15, max_value=1e15), st.integers(2, 12))
def test_numbers_in_sentences_have_no_exponent(value: float, digits: int) -> None:
    shown = plain(value, digits)
    assert "e" not in shown.lower() and not shown.endswith(".")
    assert float(shown) == pytest.approx(value, rel=10.0 ** (1 - digits))
    assert plain(value, digits, grouped=True).replace(",", "") == shown
    assert "e" not in text(value)


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_a_score_has_five_decimals_in_a_column_and_no_zeros_at_its_end_in_a_sentence(value: float) -> None:
    column, sentence = score(value), number(value)
    assert column.startswith(sentence)
    if abs(value) < 1e12:
        assert len(column.partition(".")[2]) == 5 and not sentence.endswith(".")
        assert float(sentence.replace("−", "-").replace(",", "")) == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize(
    ("value", "shown"), [(5e-05, "0.00005"), (2592000.0, "2592000"), (1e6, "1000000"), (0.1, "0.1"), (30, "30")]
)
def test_budgets_and_limits_are_written_in_full(value: float, shown: str) -> None:
    assert plain(value) == shown


def test_thresholds_of_any_size_are_written_in_full() -> None:
    values = {"gold": 1234567.0, "silver": 1e7, "bronze": 0.00005, "median": 2.5e-05}
    report = Richer(**{**GRADED, **{f"{name}_threshold": value for name, value in values.items()}})
    shown = " ".join(words for _, words in facts(report))
    assert all(one in shown for one in ("1234567", "10000000", "0.00005", "0.000025")), shown


@pytest.mark.parametrize("noun", ["row", "entry", "day", "sandbox", "class", "batch", "more line", "GPU"])
def test_a_number_agrees_with_its_noun(noun: str) -> None:
    several = {"entry": "entries", "sandbox": "sandboxes", "class": "classes", "batch": "batches"}.get(noun, f"{noun}s")
    assert [counted(number, noun) for number in (0, 1, 1200)] == [f"0 {several}", f"1 {noun}", f"1,200 {several}"]


COUNTS = re.compile(r" (?:more )?(?:runs|rows|tasks|files|seeds|attempts|calls|lines|jobs|tokens)\b(?! or )")
SEVERAL = {
    "near",
    "curves[0][1].any_of",
    "chosen",
    "alive",
    "labels",
    "names",
    "common",
    "self.tasks",
    "tasks",
    "pair.tasks",
    "frame",
    "rows",
}
"""Values whose length is more than one wherever it is displayed."""


def test_messages_count_with_the_number_of_their_noun() -> None:
    wrong = []
    for path in Path(mleredux.__file__).parents[3].glob("*/**/src/*/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = node.values if isinstance(node, ast.JoinedStr) else []
            for before, value, noun in zip([None, *parts], parts, parts[1:], strict=False):
                share = isinstance(before, ast.Constant) and str(before.value).endswith((" of ", " all "))
                if share or not isinstance(value, ast.FormattedValue) or not isinstance(noun, ast.Constant):
                    continue
                match = re.fullmatch(r"len\((.*)\)", ast.unparse(value.value))
                if match and match[1] not in SEVERAL and COUNTS.match(str(noun.value)):
                    wrong.append(f"{path}:{node.lineno} {match[0]}{noun.value}")
    assert not wrong, "use `counted`: " + "\n".join(wrong)
