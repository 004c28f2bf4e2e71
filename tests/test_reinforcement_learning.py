"""The loop of `examples/reinforcement-learning`: its policy learns what is known, and its bridge gives real rewards."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "examples" / "reinforcement-learning"


@pytest.fixture(scope="module")
def learn() -> ModuleType:
    spec = importlib.util.spec_from_file_location("learn", FOLDER / "learn.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_policy_learns_a_contextual_problem_and_the_frozen_one_does_not(learn: Any) -> None:
    def reward(task: int, action: tuple[int, ...]) -> float:
        return 0.5 * ((action[0] == 3) == task % 2) + 0.5 * (action[1] == 2)

    inputs = np.array([[float(task % 2)] for task in range(8)])

    def mean(policy: Any) -> float:
        return float(np.mean([reward(task, policy.act(inputs[task % 8])) for task in range(100, 300)]))

    policy, frozen = learn.Policy(inputs), learn.Policy(inputs, seed=1)
    for _ in range(400):
        episodes = [(task, inputs[task], policy.act(inputs[task])) for task in range(8)]
        policy.learn([(*one, reward(one[0], one[2])) for one in episodes])
    assert mean(policy) > 0.85
    assert mean(frozen) < 0.6
    assert [policy.act(inputs[task], greedy=True)[0] == 3 for task in (0, 1)] == [False, True]
    assert policy.act(inputs[0], greedy=True)[1] == 2


@pytest.mark.slow
def test_choices_are_fitted_in_the_sandbox_and_rewarded_by_their_grade_once(learn: Any, tmp_path: Path) -> None:
    places = {"sandbox": "process", "runs_dir": tmp_path / "runs", "data_dir": tmp_path / "data"}
    bridge = learn.Bridge(["wine"], 2, tmp_path / "memory.json", reward="score", invalid=-9.0, **places)
    assert bridge.inputs.shape[0] == 1 and np.isfinite(bridge.inputs).all()
    asked = [(0, (0, 0)), (0, (3, 2)), (0, (0, 0))]
    solved = bridge.solve(asked)
    bridge.envs.close()
    rewards = [one["reward"] for one in solved]
    assert rewards == [-one["report"]["score"] for one in solved]
    assert rewards[0] > -0.3 and rewards[0] != rewards[1] and rewards[1] > -1.09 and rewards[2] == rewards[0]
    cells = sorted((tmp_path / "runs").glob("*/output/code/*.py"))
    assert sum("drop_columns" in cell.read_text() for cell in cells) == 2
    again = learn.Bridge(["wine"], 2, tmp_path / "memory.json", reward="score", invalid=-9.0, **places)
    assert again.solve(asked) == solved
    again.envs.close()
    assert len(sorted((tmp_path / "runs").glob("*/output/code/*.py"))) == len(cells)
