"""A coding CLI of npm in its container, with the gateway and a scripted model, on a starter competition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import mleredux
import pytest
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.store import Run
from mleredux_rollout import read_rollout
from mleredux_scripted_llm import ScriptedLlm
from mleredux_support.usage import assert_same_usage

pytestmark = [pytest.mark.docker, pytest.mark.slow]
HERE = Path(__file__).parent
KEY = "sk-planted-7ea90b35d1"
OPTIONS = {
    "install": f"npm:{HERE / 'tiny-coder'}",
    "command": 'exec tiny-coder "$MLEREDUX_MODEL" "$MLEREDUX_PROMPT_FILE"',
    "model": "gpt-4.1",
    "libraries": "none",
}


@pytest.fixture(scope="module")
def run(docker_base_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run of four calls."""
    home = tmp_path_factory.mktemp("command")
    with ScriptedLlm(HERE / "scenarios" / "digits.yaml", key=KEY) as llm, pytest.MonkeyPatch.context() as patch:
        for name, value in llm.environment(KEY).items():
            patch.setenv(name, value)
        patch.setenv("XDG_CONFIG_HOME", str(home))
        set_current(None)
        made = mleredux.run(
            "digits", "command", sandbox="docker", options=OPTIONS, time_limit=300,
            limits={"cpus": 2, "memory_mb": 2048}, runs_dir=home / "runs", data_dir=home / "data",
        )  # fmt: skip
        assert not llm.unmatched, llm.unmatched
        yield made
    set_current(None)


def test_it_is_graded(run: Run) -> None:
    assert str(run.state) == "done", f"{run.message}\n{run.agent_log.read_text(errors='replace')}"
    assert run.report is not None and run.report.valid_submission
    assert run.report.score is not None and run.report.score > 0.97


def test_the_rollout_made_of_the_gateways_record_shows_bug_fix_and_improvement(run: Run) -> None:
    rollout = read_rollout(run.path / "rollout.json")
    texts = "\n".join(f"{step.source}: {step.message} {step.observation}" for step in rollout.steps)
    places = [
        texts.index(words)
        for words in ("First I look", "KeyError: 'label'", "not `label`", "can be bettered", "agent: DONE")
    ]
    assert places == sorted(places)
    assert rollout.final_metrics and rollout.final_metrics.total_prompt_tokens == 10_000


def test_calls_and_cost_are_in_the_ledger(run: Run) -> None:
    assert run.report is not None and run.report.ledger is not None and run.report.ledger.llm is not None
    used = run.report.ledger.llm
    assert (used.calls, used.prompt_tokens, used.completion_tokens) == (4, 10_000, 702)
    assert used.cost_usd is not None and used.cost_usd > 0
    assert_same_usage(run)


def test_the_key_is_nowhere(run: Run) -> None:
    for path in run.path.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path
