"""Tasks through the Gymnasium door: the checker accepts the environment, and its reward is the score of any run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import mleredux
import pytest
from gymnasium.utils.env_checker import check_env
from mleredux import MlereduxError
from mleredux.plugin.events import Warned
from mleredux_bridge_gymnasium.environment import PYTHON, SHELL, SUBMIT, TaskEnvironment

COPY = 'cp "$MLEREDUX_DATA_DIR/sample_submission.csv" submission.csv'


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gymnasium")


@pytest.fixture
def places(home: Path) -> dict[str, Any]:
    return {"sandbox": "process", "runs_dir": home / "runs", "data_dir": home / "data"}


@pytest.fixture
def env(places: dict[str, Any]) -> Iterator[TaskEnvironment]:
    found = TaskEnvironment("wine", **places)
    yield found
    found.close()


def played(env: gymnasium.Env[Any, Any], *actions: tuple[int, str]) -> tuple[float, dict[str, Any], list[str]]:
    env.reset(seed=0)
    texts = []
    for kind, text in actions:
        observation, reward, terminated, truncated, info = env.step({"kind": kind, "text": text})
        assert env.observation_space.contains(observation)
        assert terminated == (kind == SUBMIT) and not truncated
        texts.append(observation["text"])
    return float(reward), info, texts


def test_gymnasium_accepts_the_environment(env: TaskEnvironment) -> None:
    check_env(env, skip_render_check=True)


def test_the_reward_is_the_score_of_any_run_on_the_same_submission(env: TaskEnvironment, home: Path) -> None:
    reward, info, texts = played(env, (PYTHON, "print(6 * 7)"), (SHELL, COPY), (SUBMIT, ""))
    sample = home / "data" / "wine" / "prepared" / "public" / "sample_submission.csv"
    report = mleredux.grade(sample, "wine", data_dir=home / "data")
    assert report.score is not None
    assert abs(reward + report.score) < 1e-12  # log loss: lower is better
    assert texts[0] == "42\n"
    run = env.run
    assert (info["valid"], run.spec.agent, str(run.state)) == (True, "gymnasium", "done")
    assert any(isinstance(event.payload, Warned) and "given out" in event.payload.message for event in run.events())
    assert run.rollout is not None
    assert [call.function_name for step in run.rollout.steps for call in step.tool_calls or ()] == ["python", "sh"]


def test_an_episode_is_truncated_at_the_time_limit_and_graded(places: dict[str, Any]) -> None:
    env = TaskEnvironment("wine", reward=lambda run: float(run.report is not None), limits={"time_limit": 4}, **places)
    env.reset(seed=1)
    assert env.step({"kind": SHELL, "text": COPY})[1] == 0.0
    _, reward, terminated, truncated, _ = env.step({"kind": SHELL, "text": "sleep 60"})
    env.close()
    assert (reward, terminated, truncated) == (1.0, False, True)


def test_what_does_not_exist_is_refused_in_a_sentence() -> None:
    with pytest.raises(MlereduxError, match="There is no reward 'luck'"):
        TaskEnvironment("wine", reward="luck")
    with pytest.raises(MlereduxError, match="There is no task"):
        TaskEnvironment("whine")
