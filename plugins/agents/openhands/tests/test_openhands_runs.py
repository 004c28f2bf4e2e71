"""The real OpenHands in its container, with a language model that a scenario plays, to a graded submission."""

from __future__ import annotations

import json
from pathlib import Path

import mleredux
import pytest
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.store import Run
from mleredux_rollout import check_rollout, read_rollout, step_extra, text_of
from mleredux_scripted_llm import ScriptedLlm
from mleredux_support.usage import assert_same_usage

pytestmark = [pytest.mark.docker, pytest.mark.slow]

SCENARIO = Path(__file__).parent / "scenario" / "scenario.yaml"
KEY = "key-of-the-upstream-4711"
OPTIONS = {"model": "gpt-4.1", "libraries": "minimal", "llm_retries": 0}


@pytest.fixture(scope="module")
def run(docker_engine: None, tmp_path_factory: pytest.TempPathFactory) -> Run:
    home = tmp_path_factory.mktemp("openhands")
    with ScriptedLlm(SCENARIO, key=KEY) as llm, pytest.MonkeyPatch.context() as patch:
        for name, value in llm.environment(KEY).items():
            patch.setenv(name, value)
        patch.setenv("XDG_CONFIG_HOME", str(home))
        set_current(None)
        made = mleredux.run(
            "digits", "openhands", sandbox="docker", options=OPTIONS, time_limit=300,
            runs_dir=home / "runs", data_dir=home / "data",
        )  # fmt: skip
        assert not llm.unmatched, llm.unmatched
    set_current(None)
    return made


def log(run: Run) -> str:
    return run.agent_log.read_text(encoding="utf-8", errors="replace")


def test_it_is_graded(run: Run) -> None:
    assert str(run.state) == "done", f"{run.message}\n{log(run)}"
    assert run.report is not None and run.report.valid_submission
    assert run.report.score is not None and run.report.score > 0.95
    assert "RandomForestClassifier" in (run.output_dir / "code" / "solution.py").read_text(encoding="utf-8")


def test_the_rollout_shows_bug_fix_and_improvement(run: Run) -> None:
    path = run.path / "rollout.json"
    assert check_rollout(path) == []
    rollout = read_rollout(path)
    said = [text_of(step.message) for step in rollout.steps]
    assert said[2].startswith("First the data") and "The file's name is misspelt." in said
    ran = [step for step in rollout.steps if step_extra(step).is_buggy is not None]
    assert [step_extra(step).is_buggy for step in ran] == [True, False, False, False]
    shown = [text_of(step.observation.results[0].content) if step.observation else "" for step in ran]
    assert "FileNotFoundError" in shown[0] and "validation metric: 0.1" in shown[1]
    assert "validation metric: 0.9" in shown[2] and '"valid": true' in shown[3]
    assert rollout.agent.version == "1.58.0" and rollout.agent.model_name == "gpt-4.1"
    calls = [call.function_name for step in rollout.steps for call in step.tool_calls or ()]
    assert calls == ["file_editor", "terminal", "file_editor", "terminal", "terminal", "terminal", "finish"]


def test_calls_tokens_and_cost_are_counted_alike_by_agent_and_gateway(run: Run) -> None:
    assert run.report is not None and run.report.ledger is not None and run.report.ledger.llm is not None
    used = run.report.ledger.llm
    assert run.report.ledger.network == "gateway" and used.calls == 7
    assert used.cost_usd is not None and used.cost_usd > 0
    assert_same_usage(run)


def test_events_are_kept_and_the_upstreams_key_is_nowhere(run: Run) -> None:
    events = (run.output_dir / "logs" / "openhands" / "events.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(events[0])["kind"] == "SystemPromptEvent" and len(events) == 16
    kept = [path for path in run.path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]
