"""`mleredux experiment findings`: real runs, and a context that helps on one task and harms on another."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mleredux.plugin.artifact import RunStore
from mleredux_audit_findings.study import ARMS

MARKET = Path(__file__).with_name("market_plugin.py")
PLAN = """
[experiment]
name = "heed"
question = "Do findings help an agent that follows them?"
primary = "score"
tasks = ["shop", "market"]
seeds = [0, 1]

[findings]
techniques = ["imbalance", "cv", "debugging"]
sandbox = "process"
compute = { limits = { time_limit = "50s" } }

[arms.reader]
agent = "heedful"
sandbox = "process"
"""


def _git(folder: Path, *arguments: str) -> None:
    person = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *person, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.mark.slow
def test_harm_is_named_by_task_and_registration_is_read_from_git(cli: Any, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    for arguments in (("init",), ("add", plan.name), ("commit", "-m", "Plan")):
        _git(tmp_path, *arguments)
    call = ("-p", str(MARKET), "experiment", "findings", plan.name, "--jobs", "2")
    ran = cli(*call, "--json", "-o", "page.md")
    assert ran.returncode == 0, ran.stderr
    known = json.loads(ran.stdout)
    assert list(known["measures"]) == ["score"]  # there is no leaderboard, and thus no percentile
    results = known["measures"]["score"]
    assert list(results["arms"]) == list(ARMS)
    harm = results["negative_transfer"]
    for arm in ("graded", "skill", "unfiltered"):
        assert list(harm[arm]) == ["market"], arm
        assert harm[arm]["market"] < -0.1
    assert harm["checklist"] == harm["compute"] == {}
    assert harm["sham"] == {}  # what is right for one task is also right for the other, which has the same data
    assert results["by_task"]["shop"]["graded"] > 0.1
    assert {row["kind"] for row in known["tasks"].values()} == {"natural"}
    assert len(list((tmp_path / "runs").glob("2*"))) == 4 + len(ARMS) * 2 * 2
    assert set(known["not_applicable"]) == {"debugging@shop", "debugging@market"}
    page = (tmp_path / "page.md").read_text()
    assert "- graded: `market` (" in page
    assert "- checklist: none" in page
    assert "before the first run" in known["registration"]
    assert f"`{known['digest']}`" in page

    folder = tmp_path / "runs" / "experiments" / "heed.findings"
    texts = {path: path.read_text() for path in folder.glob("*/shop.md")}
    assert {path.parent.name for path in texts} == {"graded", "unfiltered", "sham", "checklist"}
    assert len({len(text) for text in texts.values()}) == 1
    runs = RunStore(tmp_path / "runs")
    skilled = [run for run in map(runs.get, runs.ids()) if run.spec.arm == "skill"]
    assert len(skilled) == 4
    for run in skilled:
        assert f"skill {run.spec.task}\n" in run.agent_log.read_text()

    before = sorted(path.name for path in (tmp_path / "runs").glob("2*"))
    again = cli(*call, "--json")
    assert sorted(path.name for path in (tmp_path / "runs").glob("2*")) == before  # nothing is executed twice
    assert json.loads(again.stdout)["measures"] == known["measures"]
    plan.write_text(PLAN.replace('question = "Do', 'question = "Why do'))
    changed = json.loads(cli(*call, "--json").stdout)
    assert len(changed["registered"]) == 2
    assert "has uncommitted changes" in changed["registration"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seeds = [0, 1]", "seeds = [0, 1000]", "The seed 1000 is in experiment.seeds and in findings.seeds."),
        ("[arms.reader]", '[arms.other]\nagent = "keen"\n[arms.reader]', "should have one arm, the reader"),
        ('sandbox = "process"\ncompute', 'arms = ["none", "best"]\ncompute', "findings.arms in none, checklist, sham"),
        ('agent = "heedful"', 'agnt = "heedful"', "arms.reader.agent: Field required."),
        ("techniques = [", "technique = [", "findings.technique: Extra inputs are not permitted."),
        ("[experiment]", "[experiment", "can't be read"),
        ('tasks = ["shop", "market"]', 'tasks = ["shop"]', "A sham needs another task's findings."),
        ('tasks = ["shop", "market"]', 'tasks = ["shop", "nosuch"]', "There is no task 'nosuch'."),
    ],
)
def test_a_wrong_plan_is_refused_before_any_run(cli: Any, tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.replace(old, new))
    ran = cli("-p", str(MARKET), "experiment", "findings", "plan.toml")
    assert ran.returncode == 1
    assert said in ran.stderr
    assert not (tmp_path / "runs").exists()
