"""Real AIDE in its container, with the gateway and a scripted model, on a starter competition."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mleredux
import pytest
import yaml
from mleredux._core.data import DataStore
from mleredux._core.pipeline import Pipeline
from mleredux._core.plugins.catalogue import current, set_current
from mleredux._core.store import Run, RunStore
from mleredux_rollout import read_rollout, step_extra
from mleredux_scripted_llm import ScriptedLlm
from mleredux_support.plans import plan_of
from mleredux_support.usage import assert_same_usage

pytestmark = [pytest.mark.docker, pytest.mark.slow]
SCENARIO = Path(__file__).parent / "scenarios" / "digits.yaml"
KEY = "sk-planted-9b1c7f52e0"
OPTIONS = {
    "code_model": "gpt-4.1",
    "feedback_model": "gpt-4.1-mini",
    "steps": 3,
    "drafts": 1,
    "debug_prob": 1.0,
    "exec_timeout": 120,
    "libraries": "none",
}


LIMITS = {"cpus": 2, "memory_mb": 2048}


@pytest.fixture(scope="module")
def home(docker_base_image: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for runs and data."""
    return tmp_path_factory.mktemp("aide")


@contextmanager
def language_model(scenario: Path | dict[str, Any], home: Path) -> Iterator[ScriptedLlm]:
    """A scripted model that the gateway forwards to."""
    with (
        ScriptedLlm(scenario, folder=SCENARIO.parent, key=KEY) as llm,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in llm.environment(KEY).items():
            patch.setenv(name, value)
        patch.setenv("XDG_CONFIG_HOME", str(home))
        set_current(None)
        yield llm
    set_current(None)


@pytest.fixture(scope="module")
def run(home: Path) -> Run:
    """A run of three steps."""
    with language_model(SCENARIO, home) as llm:
        made = mleredux.run(
            "digits", "aide", sandbox="docker", options=OPTIONS, time_limit=300, limits=LIMITS,
            runs_dir=home / "runs", data_dir=home / "data",
        )  # fmt: skip
        assert not llm.unmatched, llm.unmatched
    return made


def log(run: Run) -> str:
    return run.agent_log.read_text(encoding="utf-8", errors="replace")


def test_it_is_graded(run: Run) -> None:
    assert str(run.state) == "done", f"{run.message}\n{log(run)}"
    assert run.report is not None and run.report.valid_submission
    assert run.report.score is not None and run.report.score > 0.97


def test_the_rollout_shows_bug_fix_and_improvement(run: Run) -> None:
    rollout = read_rollout(run.path / "rollout.json")
    facts = [step_extra(step) for step in rollout.steps[1:]]
    assert [(f.stage, f.is_buggy) for f in facts] == [("draft", True), ("debug", False), ("improve", False)]
    assert [f.parent_id for f in facts] == [None, facts[0].node_id, facts[1].node_id]
    assert facts[1].validation_metric is not None and facts[2].validation_metric is not None
    assert facts[0].validation_metric is None and facts[1].validation_metric < facts[2].validation_metric
    assert "KeyError" in str(rollout.steps[1].observation)
    assert rollout.agent.version == "0.2.2" and rollout.agent.model_name == "gpt-4.1"


def test_submissions_of_nodes_are_kept_and_the_best_is_handed_in(run: Run) -> None:
    logs = run.output_dir / "logs" / "aide"
    kept = sorted(path.name for path in (logs / "submissions").iterdir())
    assert kept == ["0001.csv", "0002.csv"]
    assert (run.output_dir / "submission.csv").read_bytes() == (logs / "submissions" / "0002.csv").read_bytes()
    journal = json.loads((logs / "journal.json").read_text())
    assert (run.output_dir / "code" / "best_solution.py").read_text() == journal["nodes"][2]["code"]
    assert {"journal.json", "config.yaml", "tree_plot.html", "best_solution.py", "run.json"} <= set(os.listdir(logs))
    versions = [step_extra(step).submission_version for step in read_rollout(run.path / "rollout.json").steps]
    assert versions[-1] == len(run.submissions())  # a busy machine may miss the first


def test_calls_and_cost_are_in_the_ledger(run: Run) -> None:
    assert run.report is not None and run.report.ledger is not None and run.report.ledger.llm is not None
    used = run.report.ledger.llm
    assert used.calls == 6
    assert used.prompt_tokens == 3 * 2000 + 3 * 1000 and used.completion_tokens == 3 * 300 + 3 * 50
    assert used.cost_usd is not None and used.cost_usd > 0
    assert run.report.ledger.network == "gateway"
    assert_same_usage(run)


def test_a_run_that_was_stopped_has_journal_submission_and_rollout(home: Path, run: Run) -> None:
    scenario = yaml.safe_load(SCENARIO.read_text(encoding="utf-8"))
    rules = {rule["name"]: rule for rule in scenario["rules"]}
    fixed = "I begin with mean images.\n\n```python\n<<file:digits-fixed.py>>\n```\n"
    rules["draft"]["reply"]["text"] = fixed
    rules["improvement"]["reply"]["text"] = "I wait.\n\n```python\nimport time\n\ntime.sleep(600)\n```\n"
    store, data = RunStore(home / "runs"), DataStore(home / "data")
    with language_model(scenario, home):
        asked = plan_of(current(), "digits", "aide", sandbox="docker", options=OPTIONS, limits=LIMITS)
        stopped = store.create(asked, data.path)
        pipeline = Pipeline(store, current(), data)
        thread = threading.Thread(target=pipeline.execute, args=([stopped],))
        thread.start()
        try:
            until = time.monotonic() + 200
            while not stopped.submissions() and thread.is_alive():
                assert time.monotonic() < until, log(stopped)
                time.sleep(0.5)
        finally:
            pipeline.cancel()
            thread.join()
    assert str(stopped.state) == "cancelled", stopped.message
    assert "stopped: asked to end" in log(stopped)
    facts = [step_extra(step) for step in read_rollout(stopped.path / "rollout.json").steps[1:]]
    assert [(f.stage, f.is_buggy) for f in facts] == [("draft", False)]
    assert (stopped.output_dir / "submission.csv").is_file()


def test_a_spent_budget_ends_the_search_in_good_order(home: Path, run: Run) -> None:
    with language_model(SCENARIO, home):
        made = mleredux.run(
            "digits", "aide", sandbox="docker", options=OPTIONS, limits={**LIMITS, "llm_calls": 3},
            runs_dir=home / "runs", data_dir=home / "data",
        )  # fmt: skip
    assert str(made.state) == "done", f"{made.message}\n{log(made)}"
    assert "stopped: " in log(made) and "budget" in log(made)
    facts = [step_extra(step) for step in read_rollout(made.path / "rollout.json").steps[1:]]
    assert [f.is_buggy for f in facts] == [True]
    assert made.report is not None and made.report.score is not None and made.report.score > 0.8
    assert made.report.ledger is not None and made.report.ledger.llm is not None
    assert made.report.ledger.llm.exhausted == "llm_calls"


def test_the_key_is_nowhere(run: Run) -> None:
    for path in run.path.parent.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path
