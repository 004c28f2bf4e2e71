"""The real ResearchAgent in its container, with a language model that a scenario plays, to a graded submission.

Needs a base image that has MLAgentBench, named in `MLEREDUX_TEST_MLAGENTBENCH_IMAGE`.
"""

from __future__ import annotations

import os
from pathlib import Path

import mleredux
import pytest
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.store import Run
from mleredux_rollout import check_rollout, read_rollout, step_extra, text_of
from mleredux_scripted_llm import ScriptedLlm
from mleredux_support.usage import assert_same_usage

VARIABLE = "MLEREDUX_TEST_MLAGENTBENCH_IMAGE"
pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no base image that has MLAgentBench"),
]

SCENARIO = Path(__file__).parent / "scenario" / "scenario.yaml"
KEY = "key-of-the-upstream-4711"


@pytest.fixture(scope="module")
def run(docker_engine: None, tmp_path_factory: pytest.TempPathFactory) -> Run:
    home = tmp_path_factory.mktemp("mlagentbench")
    with ScriptedLlm(SCENARIO, key=KEY) as llm, pytest.MonkeyPatch.context() as patch:
        for name, value in llm.environment(KEY).items():
            patch.setenv(name, value)
        patch.setenv("XDG_CONFIG_HOME", str(home))
        set_current(None)
        made = mleredux.run(
            "digits", "mlagentbench", sandbox="docker", options={"libraries": "minimal", "llm_retries": 0},
            time_limit=300, base_image=os.environ[VARIABLE], runs_dir=home / "runs", data_dir=home / "data",
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
    assert sorted(path.name for path in (run.output_dir / "code").iterdir()) == ["solution.py"]


def test_the_rollout_shows_bug_fix_and_improvement(run: Run) -> None:
    path = run.path / "rollout.json"
    assert check_rollout(path) == []
    rollout = read_rollout(path)
    calls = [call.function_name for step in rollout.steps for call in step.tool_calls or ()]
    assert calls == ["Edit Script (AI)", "Execute Script"] * 3 + ["Final Answer"]
    ran = [step for step in rollout.steps if step_extra(step).is_buggy is not None]
    assert [step_extra(step).is_buggy for step in ran] == [True, False, False]
    shown = [text_of(step.observation.results[0].content) if step.observation else "" for step in ran]
    assert "FileNotFoundError" in shown[0] and "metric: 0.1" in shown[1] and "metric: 0.9" in shown[2]
    assert "Thought: I fix the name." in text_of(rollout.steps[3].message)


def test_calls_are_counted_alike_by_agent_and_gateway(run: Run) -> None:
    assert run.report is not None and run.report.ledger is not None and run.report.ledger.llm is not None
    used = run.report.ledger.llm
    assert used.calls == 10 and used.cost_usd is not None and used.cost_usd > 0
    rollout = read_rollout(run.path / "rollout.json")
    assert_same_usage(run)
    assert [step.llm_call_count for step in rollout.steps[1:]] == [2, 1, 2, 1, 2, 1, 1]
