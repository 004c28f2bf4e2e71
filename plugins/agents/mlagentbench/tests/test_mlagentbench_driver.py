"""The driver: its calls of models, over real sockets, and what it says where MLAgentBench is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mleredux_agent_mlagentbench.agent import Options
from mleredux_agent_mlagentbench.driver.models import Models
from mleredux_agentkit import NoMoreCalls
from mleredux_scripted_llm import ScriptedLlm

RULES: dict[str, Any] = {
    "rules": [
        {"when": {"last": "refuse"}, "reply": {"error": {"status": 403, "message": "budget_exhausted"}}},
        {"when": {"last": "hurry"}, "times": 1, "reply": {"error": {"status": 429}}},
        {"reply": {"text": "Thought: I look.\nObservation: made up", "usage": {"prompt": 7, "completion": 5}}},
    ]
}


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedLlm]:
    with ScriptedLlm(RULES) as running:
        for name, value in running.environment().items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def models(tmp_path: Path) -> Models:
    return Models({**Options().model_dump(), "llm_retries": 1}, tmp_path / "usage.jsonl")


@pytest.mark.parametrize(
    ("model", "sent", "not_sent"),
    [
        ("gpt-4.1", {"max_tokens": 4000, "stop": ["Observation:"], "temperature": 0.5}, "max_completion_tokens"),
        ("gpt-5.6", {"max_completion_tokens": 4000}, "stop"),
        ("claude-opus-5", {"max_tokens": 4000, "stop_sequences": ["Observation:"]}, "stop"),
    ],
)
def test_answers_end_before_an_invented_observation_and_are_logged(
    llm: ScriptedLlm, models: Models, tmp_path: Path, model: str, sent: dict[str, Any], not_sent: str
) -> None:
    assert models.complete_text("Look.", str(tmp_path / "step_0_log.log"), model) == "Thought: I look.\n"
    (call,) = llm.calls
    assert sent.items() <= call.body.items() and not_sent not in call.body
    assert json.loads((tmp_path / "usage.jsonl").read_text()) == {
        "model": model, "log": "step_0_log.log", "prompt_tokens": 7, "completion_tokens": 5,
    }  # fmt: skip
    assert "Thought: I look." in (tmp_path / "step_0_log.log").read_text()


def test_a_spent_budget_ends_the_work_and_a_busy_model_is_asked_again(
    llm: ScriptedLlm, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    assert models.complete_text_fast("hurry").startswith("Thought")
    assert len(llm.calls) == 2 and llm.calls[0].body["temperature"] == 0.01
    with pytest.raises(NoMoreCalls, match="budget_exhausted"):
        models.complete_text_fast("refuse")
    assert len(llm.calls) == 3


def test_without_mlagentbench_it_says_what_to_do(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "MLEREDUX_OUTPUT_DIR": str(tmp_path), "MLEREDUX_OPTIONS": "{}"}
    command = [sys.executable, "-m", "mleredux_agent_mlagentbench.driver"]
    ended = subprocess.run(command, env=env, capture_output=True, text=True)
    assert ended.returncode == 1 and "--base-image" in ended.stderr and "Traceback" not in ended.stderr


def test_inside_the_sandbox_it_needs_the_standard_library_alone() -> None:
    code = "import sys; before = set(sys.modules); from mleredux_agent_mlagentbench.driver import __main__; "
    code += "print(*set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    own = {name.partition(".")[0] for name in loaded.split()} - set(sys.stdlib_module_names)
    assert own == {"mleredux_agent_mlagentbench", "mleredux_agentkit"}
