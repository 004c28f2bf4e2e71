"""Runs that are selected by words or because they failed last, and the JUnit document of a command."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux import MlereduxError
from mleredux._core.planning.selection import failed_last, select_names
from mleredux_support.commands import mleredux
from mleredux_support.toy import TOY

NAMES = ("digits", "wine", "wine-tasting", "leakage@wine", "cv@Digits+fixed")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("wine", {"wine", "wine-tasting", "leakage@wine"}),
        ("WINE and not tasting", {"wine", "leakage@wine"}),
        ("not (wine or leakage)", {"digits", "cv@Digits+fixed"}),
        ("cv@ or tasting", {"cv@Digits+fixed", "wine-tasting"}),
        ("not not digits", {"digits", "cv@Digits+fixed"}),
    ],
)
def test_words_select_tasks_as_in_pytest(expression: str, expected: set[str]) -> None:
    assert set(select_names(NAMES, expression)) == expected


@pytest.mark.parametrize(
    "expression", ["", "and", "wine and", "(wine", "wine)", "wine (digits)", "wine digits", "()", "not ()"]
)
def test_an_expression_that_is_none_is_refused_in_a_sentence(expression: str) -> None:
    with pytest.raises(MlereduxError, match="can't be parsed") as refused:
        select_names(NAMES, expression)
    assert refused.value.hint


@given(st.text(alphabet="()andortwie_@+.'\"[]{}:=,*\\ \n", max_size=60))
def test_no_expression_does_more_than_select(expression: str) -> None:
    try:
        assert set(select_names(NAMES, expression)) <= set(NAMES)
    except MlereduxError as error:
        assert "can't be parsed" in error.message or "No task matches" in error.message


@pytest.mark.parametrize("expression", ["(" * 5_000, "not " * 20_000 + "wine", "__import__('os') or wine"])
def test_odd_expressions_execute_nothing(expression: str) -> None:
    try:
        assert set(select_names(NAMES, expression)) <= set(NAMES)
    except MlereduxError as error:
        assert "can't be parsed" in error.message


def _row(task: str, status: str, score: float | None, seed: int = 0) -> dict[str, Any]:
    return {"task": task, "agent": "dummy", "seed": seed, "status": status, "score": score}


def test_the_newest_run_decides_whether_a_plan_failed_last() -> None:
    plans: Any = [SimpleNamespace(task=task, agent="dummy", seed=0) for task in ("digits", "wine", "diabetes")]
    rows = [
        _row("digits", "failed", None),
        _row("digits", "done", 1.0),
        _row("wine", "done", 0.5),
        _row("wine", "failed", None),
        _row("diabetes", "failed", None, seed=1),
    ]
    assert [plan.task for plan in failed_last(plans, rows)] == ["digits"]
    assert failed_last(plans, rows[2:3]) == plans, "all if none failed"


def test_the_command_selects_repeats_failures_and_writes_junit(tmp_path: Path) -> None:
    where = ("--sandbox", "process", "--runs-dir", str(tmp_path / "runs"), "--json")
    junit = tmp_path / "deep" / "junit.xml"
    ran = mleredux("run", "digits", "wine", "-k", "wine", "--agent", "dummy", *where, "--junit-xml", str(junit))
    assert ran.code == 0, ran.err
    assert [run["task"] for run in json.loads(ran.out)] == ["wine"]
    cases = list(ElementTree.parse(junit).iter("testcase"))
    assert len(cases) == 1 and "wine" in "".join(cases[0].attrib.values())
    assert not list(ElementTree.parse(junit).iter("failure"))
    refused = mleredux("run", "digits", "-k", "nothing", "--agent", "dummy", *where)
    assert refused.code != 0 and "No task matches" in refused.err


@pytest.mark.parametrize(
    ("agents", "statuses"),
    [
        (("copy", "crash", "silent"), ["done", "failed", "cancelled"]),
        (("idle", "copy"), ["done", "cancelled"]),
        (("copy", "crash"), ["done", "failed"]),
    ],
)
def test_the_first_failure_cancels_the_other_runs(
    toy: Any, tmp_path: Path, agents: tuple[str, ...], statuses: list[str]
) -> None:
    """An agent that leaves no valid submission has failed, too; runs that ended before are unchanged."""
    where = ("--sandbox", "process", "--runs-dir", str(toy.store.path), "--data-dir", str(toy.data.path), "--json")
    chosen = [word for agent in agents for word in ("--agent", agent)]
    junit = tmp_path / "junit.xml"
    ran = mleredux("-p", str(TOY), "run", "toy", *chosen, "-x", "--durations", "2", "--junit-xml", str(junit), *where)
    assert ran.code == 3, ran.err
    assert [run["status"] for run in json.loads(ran.out)] == statuses
    cancelled = statuses.count("cancelled")
    assert ElementTree.parse(junit).getroot().get("skipped") == str(cancelled)
    slowest = [line.split() for line in ran.err.splitlines() if " · seed 0" in line]
    assert len(slowest) == 2 and float(slowest[0][0]) >= float(slowest[1][0]), ran.err
    assert ("--last-failed" in ran.err) == bool(cancelled)
    reasons = [run["message"] for run in json.loads(ran.out) if run["status"] == "cancelled"]
    assert set(reasons) <= {"The run was cancelled."}, "no user did so"
