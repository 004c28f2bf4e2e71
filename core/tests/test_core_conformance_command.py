"""`mleredux conformance` and the agent `oracle`, which authors of plugins and tasks use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mleredux._core.plugins import current
from mleredux.errors import NotGranted
from mleredux_support.commands import Told, mleredux
from mleredux_support.plans import plan_of

BROKEN = """
from mleredux import hookimpl
from mleredux.plugin.agent import Agent, Limits

@hookimpl
def mleredux_register_agents():
    return [Agent(id="idle", title="Does nothing", command=("true",), limits=Limits(time_limit=20))]
"""


def conformance(*words: str) -> Told:
    return mleredux("conformance", *words)


def test_a_package_that_conforms_has_a_line_for_each_check(mleredux_home: Path) -> None:
    told = conformance("mleredux-agent-dummy")
    assert (told.code, told.err) == (0, "")
    assert told.out.splitlines() == [
        "✓ plugin dummy", "✓ agent dummy", "mleredux-agent-dummy: 2 of 2 checks passed.",
    ]  # fmt: skip


def test_what_is_wrong_is_listed_and_the_exit_code_is_3(mleredux_home: Path, tmp_path: Path) -> None:
    (tmp_path / "idle_plugin.py").write_text(BROKEN)
    told = mleredux("-p", str(tmp_path / "idle_plugin.py"), "conformance", "idle_plugin", "--only", "idle", "--json")
    assert told.code == 3 and told.json["conforms"] is False
    (row,) = [row for row in told.json["checks"] if row["id"] == "idle"]
    assert row["result"] == "failed" and any("submission" in message for message in row["messages"])


def test_what_cannot_be_checked_here_says_why() -> None:
    told = conformance("mlebench", "--only", "spaceship-titanic")
    assert told.code == 0 and "- task spaceship-titanic (its raw data needs an account" in told.out
    told = conformance("mleredux-graders", "--only", "ndcg-at-k", "--only", "map-at-k")
    assert told.code == 0 and "- grader ndcg-at-k (it rejects the toy answers" in told.out
    assert "✓ grader map-at-k" in told.out


@pytest.mark.parametrize(
    ("package", "said"), [("no-such-package", "Install it into this environment"), ("rich", "entry point belongs in")]
)
def test_packages_without_plugins_are_told_apart(package: str, said: str) -> None:
    told = conformance(package)
    assert told.code != 0 and said in told.err and "Traceback" not in told.err


def test_the_oracle_shows_the_ceiling_and_its_result_counts_nowhere(mleredux_home: Path) -> None:
    told = mleredux("run", "wine", "--agent", "oracle", "--json")
    run = told.json
    assert (told.code, run["status"], run["sandbox"]) == (0, "done", "process")
    report = run["report"]
    assert report["score"] == pytest.approx(0, abs=1e-9)
    assert report["verdict"]["status"] == "tainted"
    assert "submits the task's own answers" in report["verdict"]["why"]
    assert report["gold_medal"] is False and report["verdict"]["withheld"]["gold_medal"] is True
    board = mleredux("leaderboard")
    assert board.code != 0 and "oracle" not in board.out
    events = (Path(run["path"]) / "events.jsonl").read_text().splitlines()
    assert not [one for one in map(json.loads, events) if one["type"] == "agent"], "no process was started"


def test_the_oracle_is_refused_where_its_user_is_not_the_machine_s(mleredux_home: Path) -> None:
    """A server plans runs without `own_machine`."""
    with pytest.raises(NotGranted, match="only runs on its user's own machine"):
        plan_of(current(), "wine", "oracle")
    assert plan_of(current(), "wine", "oracle", own_machine=True).agent == "oracle"
