"""Complete real runs end with a rollout and a page that are in the manifest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import mleredux_testing as testing
import pytest
from mleredux._core.data import DataStore
from mleredux._core.pipeline import Pipeline
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.store import Run, RunStore
from mleredux.models import State
from mleredux_rollout import check_rollout, run_extra, step_extra
from mleredux_support.plans import plan_of

HOSTILE = '''
from mleredux import Agent, hookimpl

CODE = """
import os, pathlib, sys
out = pathlib.Path(os.environ["MLEREDUX_OUTPUT_DIR"])
(out / "rollout" / "trajectory.json").symlink_to("/etc/passwd")
os.mkfifo(out / "logs" / "pipe.log")
with open(out / "logs" / "huge.log", "wb") as file:
    file.truncate(200 << 20)
open(os.fsencode(out) + b"/code/\\\\xff<b>.py", "wb").write(b"\\\\x00\\\\xff</pre><script>alert(1)</script>")
sys.stdout.buffer.write(b"\\\\xff</pre><script>alert(1)</script>\\\\x1b]0;title\\\\x07\\\\n" * 20000)
sys.exit(3)
"""

@hookimpl
def mleredux_register_agents():
    return [Agent(id="hostile", title="Leaves what it should not", command=("python", "-c", CODE))]
'''


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    """The toy task, the toy agent, and a hostile agent."""
    (tmp_path / "mleredux_plugins.py").write_text(HOSTILE, encoding="utf-8")
    found = Catalogue(load=(testing.TOY_PLUGIN, str(tmp_path)))
    set_current(found)
    yield found
    set_current(None)


def finished(catalogue: Catalogue, agent: str, home: Path) -> Run:
    data = DataStore(home / "data")
    store = RunStore(home / "runs")
    run = store.create(plan_of(catalogue, "toy", agent, sandbox="process"), data.path)
    Pipeline(store, catalogue, data).execute([run])
    return run


def check_files(run: Run) -> str:
    """Assert that both files exist, are valid, and are in the manifest with their hash; return the page."""
    assert [event.data for event in run.events() if event.type == "warning"] == []
    assert check_rollout(run.path / "rollout.json") == []
    manifest = run.manifest
    assert manifest is not None
    listed = {artifact.path: artifact for artifact in manifest.artifacts}
    for name in ("rollout.json", "report.html"):
        content = (run.path / name).read_bytes()
        assert (listed[name].producer, listed[name].size) == ("reports", len(content))
        assert listed[name].sha256 == hashlib.sha256(content).hexdigest()
    return (run.path / "report.html").read_text(encoding="utf-8")


def test_a_run_of_the_toy_agent_ends_with_both(catalogue: Catalogue, tmp_path: Path) -> None:
    run = finished(catalogue, "toy-nearest", tmp_path)
    assert run.state == State.DONE
    page = check_files(run)
    assert "Large rectangles" in page and "wrote 40 rows" in page
    report, trajectory = run.report, run.rollout
    assert report is not None and trajectory is not None
    facts = run_extra(trajectory)
    assert facts is not None
    assert (facts.run, facts.state, facts.score, facts.made_from) == (run.id, "done", report.score, "events")
    assert [fact.score for fact in facts.submissions] == [report.score]
    scores = [step_extra(step).score_after_run for step in trajectory.steps]
    assert [score for score in scores if score is not None] == [report.score]


def test_a_hostile_agent_gets_a_harmless_page(catalogue: Catalogue, tmp_path: Path) -> None:
    run = finished(catalogue, "hostile", tmp_path)
    assert run.state == State.FAILED
    page = check_files(run)
    assert "<script" not in page and "root:x:0" not in page
    assert "\\xff&lt;/pre&gt;&lt;script&gt;" in page
    assert len(page) < 2_000_000
    trajectory = run.rollout
    facts = run_extra(trajectory) if trajectory else None
    assert facts is not None and (facts.state, facts.cause) == ("failed", "agent_crashed")


@pytest.mark.parametrize("check", testing.checks("reports"))
def test_the_plugin_keeps_the_contract(check: Callable[[Path], object], tmp_path: Path) -> None:
    check(tmp_path)
