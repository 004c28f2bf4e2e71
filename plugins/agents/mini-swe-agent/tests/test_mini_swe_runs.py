"""Real mini-swe-agent in its container, with the gateway and a scripted model, on a starter competition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mleredux
import pytest
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.store import Run
from mleredux_rollout import Step, read_rollout, step_extra
from mleredux_scripted_llm import ScriptedLlm
from mleredux_support.commands import mleredux as mleredux_command
from mleredux_support.usage import assert_same_usage

pytestmark = [pytest.mark.docker, pytest.mark.slow]
SCENARIO = Path(__file__).parent / "scenarios" / "digits.yaml"
KEY = "sk-planted-41d0c6a7be"


@pytest.fixture(scope="module")
def run(docker_base_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run of five calls."""
    home = tmp_path_factory.mktemp("mini-swe")
    with ScriptedLlm(SCENARIO, key=KEY) as llm, pytest.MonkeyPatch.context() as patch:
        for name, value in llm.environment(KEY).items():
            patch.setenv(name, value)
        patch.setenv("XDG_CONFIG_HOME", str(home))
        set_current(None)
        made = mleredux.run(
            "digits", "mini-swe-agent", sandbox="docker", options={"model": "gpt-4.1", "libraries": "none"},
            time_limit=300, limits={"cpus": 2, "memory_mb": 2048}, runs_dir=home / "runs", data_dir=home / "data",
        )  # fmt: skip
        assert not llm.unmatched, llm.unmatched
        yield made
    set_current(None)


def agent_steps(run: Run) -> list[Step]:
    return [step for step in read_rollout(run.path / "rollout.json").steps if step.source == "agent"]


def test_it_is_graded(run: Run) -> None:
    assert str(run.state) == "done", f"{run.message}\n{run.agent_log.read_text(errors='replace')}"
    assert run.report is not None and run.report.valid_submission
    assert run.report.score is not None and run.report.score > 0.97


def test_the_rollout_shows_bug_fix_and_improvement(run: Run) -> None:
    steps = agent_steps(run)
    assert [step_extra(step).is_buggy for step in steps] == [True, False, False, False, None]
    texts = [str(step.observation.results[0].content) if step.observation else "" for step in steps]
    assert "KeyError: 'label'" in texts[0]
    fixed, improved = (float(text.partition("validation metric: ")[2]) for text in texts[1:3])
    assert 0.8 < fixed < improved
    assert "well-formed" in texts[3] or "valid" in texts[3]
    calls = steps[0].tool_calls
    assert calls and calls[0].function_name == "bash" and "code/solution.py" in calls[0].arguments["command"]


def test_tokens_and_cost_are_counted_in_rollout_and_ledger(run: Run) -> None:
    rollout = read_rollout(run.path / "rollout.json")
    assert rollout.final_metrics and rollout.final_metrics.total_prompt_tokens == 13_500
    assert run.report is not None and run.report.ledger is not None and run.report.ledger.llm is not None
    used = run.report.ledger.llm
    assert (used.calls, used.prompt_tokens, used.completion_tokens) == (5, 13_500, 760)
    assert used.cost_usd is not None and used.cost_usd > 0
    assert run.report.ledger.validations == 1
    assert_same_usage(run)


def test_the_key_is_nowhere(run: Run) -> None:
    for path in run.path.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


def test_it_is_repeated_from_its_record_and_ends_at_the_first_call_that_differs(run: Run) -> None:
    def repeated(*options: str) -> Run:
        folders = ("--runs-dir", str(run.path.parent), "--data-dir", str(run.path.parents[1] / "data"))
        words = ("run", "digits", "--agent", "mini-swe-agent", "--sandbox", "docker", "--replay", run.id, *folders)
        before = set(run.path.parent.glob("2*"))
        told = mleredux_command(*words, *options)
        (made,) = set(run.path.parent.glob("2*")) - before
        assert made.is_dir(), told
        return Run(made)

    def used(made: Run) -> Any:
        assert made.report is not None and made.report.ledger is not None and made.report.ledger.llm is not None
        return made.report.ledger.llm

    same, other = repeated(), repeated("-O", "temperature=0.5")
    assert run.report is not None and same.report is not None and same.report.score == run.report.score
    assert (used(same).repeated, used(same).differences, used(same).cost_usd) == (5, (), 0)
    told = f"Call 1 differs from call 1 of {run.id} at temperature: it was nothing, and is now “0.5”."
    assert used(other).differences == (told, f"Not repeated: 5 calls of {run.id}.")
    assert other.outcome is not None and other.outcome.seconds < 60, "it asked again"
