"""Many environments at once, and rules of rewards that others bring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from mleredux import MlereduxError, Run
from mleredux_agents import rule_of
from mleredux_bridge_gymnasium.environment import SUBMIT, TaskEnvironment

COPY = 'cp "$MLEREDUX_DATA_DIR/sample_submission.csv" submission.csv'


def steps_of(run: Run) -> float | None:
    """A rule: how many steps the policy took."""
    return float(sum(step.source == "agent" for step in run.rollout.steps)) if run.rollout else None


def test_environments_are_stepped_together_each_with_its_task_and_reward(tmp_path: Path) -> None:
    places = {"sandbox": "process", "runs_dir": tmp_path / "runs", "data_dir": tmp_path / "data"}
    envs: Any = gymnasium.make_vec(
        "mleredux/Task-v0", num_envs=3, vectorization_mode="vector_entry_point", task=["wine", "diabetes"], **places
    )
    observed, info = envs.reset(seed=[0, 1, 2])
    assert list(info["task"]) == ["wine", "diabetes", "wine"]
    assert envs.observation_space.contains(observed)
    texts = (f"{COPY}; echo first", COPY, "false")
    observed, rewards, ended, *_ = envs.step({"kind": np.zeros(3, dtype=int), "text": texts})
    assert observed["text"][0] == "first\n" and list(observed["failed"]) == [0, 0, 1]
    assert not rewards.any() and not ended.any()
    _, rewards, ended, _, info = envs.step({"kind": np.array([SUBMIT, 0, SUBMIT]), "text": ("", "true", "")})
    assert list(ended) == [True, False, True] and list(info["valid"]) == [True, False, False]
    scores = [env.unwrapped.run.report for env in envs.envs]
    assert rewards[0] == rule_of("standing").of_report(scores[0]) >= 0.1 and rewards[1] == rewards[2] == 0
    assert info["score"][0] == scores[0].score and list(info["medal"]) == [None] * 3
    _, _, ended, *_ = envs.step({"kind": np.zeros(3, dtype=int), "text": ("true",) * 3})
    assert not ended.any() and str(envs.envs[0].unwrapped.run.state) == "running"
    envs.close()
    assert [str(env.unwrapped._session) for env in envs.envs] == ["None"] * 3


def test_a_reset_that_finds_no_room_says_so(tmp_path: Path) -> None:
    places: dict[str, Any] = {"sandbox": "process", "runs_dir": tmp_path / "runs", "data_dir": tmp_path / "data"}
    rule = f"{__name__}:steps_of"
    first = TaskEnvironment("wine", limits={"cpus": 1e-3, "memory_mb": 64}, reward=rule, **places)
    first.reset(seed=0)
    from mleredux.plugin.host import machine_slots

    rest = {"cpus": machine_slots().cpus, "memory_mb": 64}
    second = TaskEnvironment("wine", limits=rest, slot_timeout=0.3, **places)
    with pytest.raises(MlereduxError, match="which other runs are using"):
        second.reset(seed=0)
    first.step({"kind": 0, "text": COPY})
    assert first.step({"kind": SUBMIT, "text": ""})[1] > 0
