"""Learn by REINFORCE which pipeline of `automl` to fit to which table, through the Gymnasium door.

An episode is a task: `look.py` describes its table, the policy chooses, `fit.py` fits the pipeline and writes the
submission, and the reward is what the door gives for it. Then the policy, the frozen one that it began with (uniform),
and the fixed choice that did best in training solve tasks of other seeds, which `mleredux compare` pairs by task.
"""

from __future__ import annotations

import argparse
import json
import pprint
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import mleredux_bridge_gymnasium.environment  # registers the environment
import numpy as np

PYTHON, SUBMIT = mleredux_bridge_gymnasium.environment.PYTHON, mleredux_bridge_gymnasium.environment.SUBMIT
HERE = Path(__file__).parent
HEADS: dict[str, tuple[Any, ...]] = {
    "family": ("linear", "boosting", "forest", "neighbors"),
    "drop": (0, 1, 2),
    "many": ("TargetEncoder", "OrdinalEncoder", "drop"),
}
"""What is chosen: a family of models, how many of the most telling columns to drop, how to encode many categories."""
Action = tuple[int, ...]


class Policy:
    """A softmax of a linear function of features for each head: REINFORCE (Williams 1992) with a baseline by task.

    Args:
        sizes: The number of choices of each head.
        features: The number of features.
        rate: Of learning.
    """

    def __init__(self, sizes: Sequence[int], features: int, rate: float = 0.5, seed: int = 0) -> None:
        self.weights = [np.zeros((size, features)) for size in sizes]
        self.rate, self.generator = rate, np.random.default_rng(seed)
        self.seen: dict[Any, list[float]] = {}

    def chances(self, x: np.ndarray) -> list[np.ndarray]:
        """The probability of each choice of each head; `x` has shape (features,)."""
        logits = [weights @ x for weights in self.weights]
        powers = [np.exp(one - one.max()) for one in logits]
        return [one / one.sum() for one in powers]

    def act(self, x: np.ndarray, *, greedy: bool = False) -> Action:
        """Draw an action, or take the most probable one."""
        chances = self.chances(x)
        if greedy:
            return tuple(int(one.argmax()) for one in chances)
        return tuple(int(self.generator.choice(len(one), p=one)) for one in chances)

    def learn(self, episodes: Sequence[tuple[Any, np.ndarray, Action, float]]) -> None:
        """One step of gradient ascent by episodes: task, features, action and reward."""
        steps = [np.zeros_like(weights) for weights in self.weights]
        for task, x, action, reward in episodes:
            known = self.seen.setdefault(task, [])
            advantage = reward - (np.mean(known) if known else 0.5)
            known.append(reward)
            for step, chances, choice in zip(steps, self.chances(x), action, strict=True):
                step += advantage * np.outer(np.eye(len(chances))[choice] - chances, x)
        for weights, step in zip(self.weights, steps, strict=True):
            weights += self.rate * step


class Door:
    """Tasks that are solved through vectorised environments.

    Args:
        tasks: Their ids.
        size: The number of environments.
        named: Arguments of the environments.
    """

    def __init__(self, tasks: Sequence[str], size: int, **named: Any) -> None:
        self.tasks, self.size = list(tasks), size
        self.envs = gymnasium.make_vec(
            "mleredux/Task-v0", num_envs=size, vectorization_mode="vector_entry_point", task=self.tasks, **named
        )
        self._looks: dict[int, dict[str, Any]] = {}

    def begin(self, chosen: Sequence[int]) -> np.ndarray:
        """Begin an episode of each task, by its number; their features, of shape (tasks, features)."""
        self.chosen = list(chosen)
        self.envs.reset(seed=[*self.chosen, *[0] * (self.size - len(self.chosen))])
        new = [task not in self._looks for task in self.chosen]
        if any(new):
            look = (HERE / "look.py").read_text("utf-8")
            texts = self._run([look if one else "" for one in new])
            self._looks |= {
                task: json.loads(text) for task, text, one in zip(self.chosen, texts, new, strict=True) if one
            }
        return np.array([[1.0, *self._looks[task]["features"].values()] for task in self.chosen])

    def end(self, actions: Sequence[Action]) -> tuple[list[float], list[dict[str, Any]]]:
        """Fit the chosen pipelines and submit: rewards, and reports."""
        cell = (HERE / "fit.py").read_text("utf-8")
        choices = [self.choices(*pair) for pair in zip(self.chosen, actions, strict=True)]
        self._run([f"CHOICES = {pprint.pformat(one)}\n{cell}" for one in choices])
        _, rewards, *_ = self.envs.step(self._batch([SUBMIT] * self.size, []))
        reports = [env.unwrapped.run.report.model_dump(mode="json") for env in self.envs.envs[: len(self.chosen)]]
        return [float(one) for one in rewards[: len(self.chosen)]], reports

    def choices(self, task: int, action: Action) -> dict[str, Any]:
        """An action as the cell reads it."""
        named = {name: options[one] for (name, options), one in zip(HEADS.items(), action, strict=True)}
        return {**named, "drop_columns": self._looks[task]["order"][: named.pop("drop")]}

    def _run(self, cells: Sequence[str]) -> list[str]:
        kinds = [PYTHON if cell else 0 for cell in cells]
        observed, *_ = self.envs.step(self._batch(kinds, [cell or "true" for cell in cells]))
        for cell, failed, text in zip(cells, observed["failed"], observed["text"], strict=False):
            if cell and failed:
                sys.stderr.write(f"A cell failed: {text[-500:]}\n")
        return list(observed["text"][: len(cells)])

    def _batch(self, kinds: Sequence[int], texts: Sequence[str]) -> dict[str, Any]:
        kinds, texts = [*kinds, *[0] * (self.size - len(kinds))], [*texts, *["true"] * (self.size - len(texts))]
        return {"kind": np.array(kinds), "text": tuple(texts)}


def train(door: Door, policy: Policy | None, rounds: int, seed: int) -> tuple[Policy, list[tuple[Action, float]]]:
    """Let a policy learn; every episode's action and reward, in order."""
    generator, history = np.random.default_rng(seed), list[tuple[Action, float]]()
    order: list[int] = []
    for number in range(rounds):
        while len(order) < door.size:
            order += generator.permutation(len(door.tasks)).tolist()
        chosen, order = order[: door.size], order[door.size :]
        x = door.begin(chosen)
        policy = policy or Policy([len(one) for one in HEADS.values()], x.shape[1], seed=seed)
        actions = [policy.act(one) for one in x]
        rewards, _ = door.end(actions)
        policy.learn(list(zip(chosen, x, actions, rewards, strict=True)))
        history += zip(actions, rewards, strict=True)
        sys.stdout.write(f"round {number + 1} of {rounds}: mean reward {np.mean(rewards):.3f}\n")
        sys.stdout.flush()
    assert policy is not None
    return policy, history


def evaluate(door: Door, act: Any, folder: Path, repeats: int) -> float:
    """Solve every task with the actions of a policy: the mean reward; a grading report a repeat goes to the folder."""
    folder.mkdir(parents=True)
    rewards: list[float] = []
    for repeat in range(repeats):
        reports: list[dict[str, Any]] = []
        for start in range(0, len(door.tasks), door.size):
            x = door.begin(range(start, min(start + door.size, len(door.tasks))))
            given, told = door.end([act(one) for one in x])
            rewards, reports = rewards + given, reports + told
        (folder / f"{repeat}.json").write_text(json.dumps({"competition_reports": reports}), "utf-8")
    return float(np.mean(rewards))


def best_fixed(history: Sequence[tuple[Action, float]]) -> Action:
    """For each head the choice whose episodes had the best mean reward in training."""
    found = []
    for head, options in enumerate(HEADS.values()):
        means = [np.mean([r for action, r in history if action[head] == one] or [-1]) for one in range(len(options))]
        found.append(int(np.argmax(means)))
    return tuple(found)


def draw(rewards: Sequence[float], levels: dict[str, float], path: Path, window: int = 40) -> None:
    """The rewards in training, as a moving mean, and the means on held-out tasks, as SVG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axes = figure.add_subplot()
    window = min(window, len(rewards))
    smooth = np.convolve(rewards, np.ones(window) / window, mode="valid")
    axes.plot(
        np.arange(window, len(rewards) + 1), smooth, color="#0072b2", label=f"training, mean of {window} episodes"
    )
    for (name, level), color in zip(levels.items(), ("#999999", "#e69f00", "#d55e00"), strict=True):
        axes.axhline(level, color=color, linestyle="--", linewidth=1, label=f"held-out seeds: {name}")
    axes.set(xlabel="episodes", ylabel="reward")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    with mpl.rc_context({"svg.hashsalt": "learn", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure.savefig(path, metadata={"Date": None, "Creator": None})


def main() -> None:
    """Train, evaluate, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="a new folder for runs, reports, the policy and the curve")
    parser.add_argument("--tasks", default="synthetic-public-{}", help="ids of tasks by seed")
    parser.add_argument("--train", type=int, default=16, help="number of training tasks: seeds from 1")
    parser.add_argument("--held-out", type=int, default=12, help="number of held-out tasks: seeds from 101")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--envs", type=int, default=8, help="environments at once, and episodes of a round")
    parser.add_argument("--repeats", type=int, default=3, help="evaluations of the frozen policy on each task")
    parser.add_argument("--reward", default="percentile")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-dir", type=Path, help="folder for prepared data, to be used again")
    asked = parser.parse_args()
    named = {"reward": asked.reward, "invalid": 0.0, "sandbox": "process", "data_dir": asked.data_dir}
    tasks = [asked.tasks.format(seed) for seed in range(1, asked.train + 1)]
    held = [asked.tasks.format(seed) for seed in range(101, asked.held_out + 101)]
    door = Door(tasks, asked.envs, runs_dir=asked.output / "train", **named)
    policy, history = train(door, None, asked.rounds, asked.seed)
    door.envs.close()
    frozen = Policy([len(one) for one in HEADS.values()], policy.weights[0].shape[1], seed=asked.seed + 1)
    fixed = best_fixed(history)
    door = Door(held, min(asked.envs, len(held)), runs_dir=asked.output / "held-out", **named)
    reports = asked.output / "reports"
    levels = {
        "frozen": evaluate(door, frozen.act, reports / "frozen", asked.repeats),
        "fixed": evaluate(door, lambda _x: fixed, reports / "fixed", 1),
        "learned": evaluate(door, lambda x: policy.act(x, greedy=True), reports / "learned", 1),
    }
    door.envs.close()
    told = {name: options[one] for (name, options), one in zip(HEADS.items(), fixed, strict=True)}
    sys.stdout.write(f"fixed choice: {told}\nmean reward on held-out tasks: {levels}\n")
    (asked.output / "policy.json").write_text(json.dumps([one.tolist() for one in policy.weights]), "utf-8")
    (asked.output / "episodes.json").write_text(json.dumps(history), "utf-8")
    draw([reward for _, reward in history], levels, asked.output / "curve.svg")
    for other in ("frozen", "fixed"):
        compared = ("compare", other, "learned", "--reports", str(reports), "--measure", "percentile")
        subprocess.run([sys.executable, "-m", "mleredux", *compared], check=True)


if __name__ == "__main__":
    main()
