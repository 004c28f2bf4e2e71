"""The loop of `examples/reinforcement-learning`: its policy learns what is known, and its door gives real rewards."""

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
        return 0.5 * (action[0] == task % 2) + 0.5 * (action[1] == 2)

    def features(task: int) -> Any:
        return np.array([1.0, float(task % 2)])

    def mean(policy: Any) -> float:
        return float(np.mean([reward(task, policy.act(features(task))) for task in range(100, 300)]))

    policy, frozen = learn.Policy((2, 3), 2), learn.Policy((2, 3), 2, seed=1)
    for _ in range(40):
        episodes = [(task, features(task), policy.act(features(task))) for task in range(8)]
        policy.learn([(*one, reward(one[0], one[2])) for one in episodes])
    assert mean(policy) > 0.9
    assert mean(frozen) < 0.6
    assert policy.act(features(1), greedy=True) == (1, 2)


@pytest.mark.slow
def test_choices_are_fitted_in_the_sandbox_and_rewarded_by_their_grade(learn: Any, tmp_path: Path) -> None:
    places = {"sandbox": "process", "runs_dir": tmp_path / "runs", "data_dir": tmp_path / "data"}
    door = learn.Door(["wine"], 2, reward="score", **places)
    x = door.begin([0, 0])
    assert x.shape[0] == 2 and np.isfinite(x).all()
    rewards, reports = door.end([(0, 0, 0), (3, 2, 0)])
    door.envs.close()
    assert rewards == [-report["score"] for report in reports]
    assert rewards[0] > -0.3 and rewards[0] != rewards[1] and rewards[1] > -1.09
    cells = sorted((tmp_path / "runs").glob("*/output/code/*.py"))
    assert sum("drop_columns" in cell.read_text() for cell in cells) == 2
