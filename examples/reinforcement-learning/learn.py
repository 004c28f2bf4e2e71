"""Learn by REINFORCE which pipeline of `automl` to fit to which table, through the Gymnasium bridge.

An episode is a task: `look.py` describes its table, the policy chooses, `fit.py` fits the pipeline and writes the
submission, and the bridge returns the reward. The same choice on the same task has the same reward, so each is executed
once and remembered in `OUTPUT/train.json`, and an interrupted training continues from there. Then the policy, the
frozen one that it began with (uniform), and the fixed choice that did best in training solve tasks of other seeds,
which `mleredux compare` pairs by task.
"""

from __future__ import annotations

import argparse
import json
import pprint
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

import gymnasium
import mleredux_bridge_gymnasium.environment  # registers the environment
import numpy as np

PYTHON, SUBMIT = mleredux_bridge_gymnasium.environment.PYTHON, mleredux_bridge_gymnasium.environment.SUBMIT
HERE = Path(__file__).parent
HEADS: dict[str, tuple[Any, ...]] = {"family": ("linear", "boosting", "forest", "neighbors"), "drop": (0, 1, 2)}
"""What is chosen: a family of models, and how many of the most telling columns not to use."""
HELD_OUT = 103
"""The first of the held-out seeds: 101 and 102 were seen when the program was tried out."""
Action = tuple[int, ...]
ACTIONS: list[Action] = list(product(*map(range, map(len, HEADS.values()))))


class Policy:
    """A softmax of a linear function of features for each head: REINFORCE (Williams 1992) with a baseline by task.

    Args:
        inputs: The features of all training tasks, of shape (tasks, features), by which features are standardized.
        rate: Of learning.
        decay: Of the weights, as in ridge regression; those of the constant don't decay.
    """

    def __init__(self, inputs: np.ndarray, rate: float = 0.5, decay: float = 0.05, seed: int = 0) -> None:
        self.mean, self.scale = inputs.mean(axis=0), inputs.std(axis=0) + 1e-6
        self.weights = [np.zeros((len(options), 1 + inputs.shape[1])) for options in HEADS.values()]
        self.rate, self.decay, self.generator = rate, decay, np.random.default_rng(seed)
        self.seen: dict[Any, list[float]] = {}

    def standard(self, x: np.ndarray) -> np.ndarray:
        """Return a one, and standardized features within ±3."""
        return np.concatenate([[1.0], np.clip((x - self.mean) / self.scale, -3, 3)])

    def chances(self, x: np.ndarray) -> list[np.ndarray]:
        """Return the probability of each choice of each head; `x` has shape (features,)."""
        logits = [weights @ self.standard(x) for weights in self.weights]
        powers = [np.exp(logit - logit.max()) for logit in logits]
        return [logit / logit.sum() for logit in powers]

    def act(self, x: np.ndarray, *, greedy: bool = False) -> Action:
        """Draw an action, or take the most probable one."""
        chances = self.chances(x)
        if greedy:
            return tuple(int(chance.argmax()) for chance in chances)
        return tuple(int(self.generator.choice(len(chance), p=chance)) for chance in chances)

    def learn(self, episodes: Sequence[tuple[Any, np.ndarray, Action, float]]) -> None:
        """One step of gradient ascent by the mean of episodes: task, features, action and reward.

        The baseline of a task is the mean reward of its last 20 episodes.
        """
        steps = [np.zeros_like(weights) for weights in self.weights]
        for task, x, action, reward in episodes:
            known = self.seen.setdefault(task, [])
            advantage = reward - (np.mean(known[-20:]) if known else 0.5)
            known.append(reward)
            for step, chances, choice in zip(steps, self.chances(x), action, strict=True):
                step += advantage * np.outer(np.eye(len(chances))[choice] - chances, self.standard(x)) / len(episodes)
        for weights, step in zip(self.weights, steps, strict=True):
            step[:, 1:] -= self.decay * weights[:, 1:]
            weights += self.rate * step


class Bridge:
    """Tasks that are solved through vectorized environments.

    Args:
        tasks: Their ids.
        size: The number of environments.
        memory: The file of what is known of tasks by id: how they look, and reports and rewards by action.
        named: Arguments of the environments.
    """

    def __init__(self, tasks: Sequence[str], size: int, memory: Path, **named: Any) -> None:
        self.tasks, self.size, self.path = list(tasks), size, memory
        self.memory = json.loads(memory.read_text("utf-8")) if memory.exists() else {}
        self.envs = gymnasium.make_vec(
            "mleredux/Task-v0", num_envs=size, vectorization_mode="vector_entry_point", task=self.tasks, **named
        )
        cell = (HERE / "look.py").read_text("utf-8")
        for places in batched([place for place, task in enumerate(self.tasks) if task not in self.memory], size):
            for place, text in zip(places, self._run(places, [cell] * len(places)), strict=True):
                self.memory[self.tasks[place]] = {**json.loads(text), "solved": {}}
            self._keep()
        self.inputs = np.array([[*self.memory[task]["features"].values()] for task in self.tasks])

    def solve(self, episodes: Sequence[tuple[int, Action]]) -> list[dict[str, Any]]:
        """Return the reward and report of each episode, by the place of its task and its action; run new ones."""
        keys = [(place, ",".join(map(str, action))) for place, action in episodes]
        cell = (HERE / "fit.py").read_text("utf-8")
        new = [(place, key) for place, key in dict.fromkeys(keys) if key not in self._solved(place)]
        for some in batched(new, self.size):
            choices = [self.choices(place, key) for place, key in some]
            self._run(
                [place for place, _ in some], [f"CHOICES = {pprint.pformat(picked)}\n{cell}" for picked in choices]
            )
            kinds = [SUBMIT if number < len(some) else 0 for number in range(self.size)]
            _, rewards, *_ = self.envs.step({"kind": np.array(kinds), "text": ("true",) * self.size})
            for (place, key), env, reward in zip(some, self.envs.envs, rewards, strict=False):
                report = env.unwrapped.run.report.model_dump(mode="json")
                self._solved(place)[key] = {"reward": float(reward), "report": report}
            self._keep()
        return [self._solved(place)[key] for place, key in keys]

    def choices(self, place: int, key: str) -> dict[str, Any]:
        """Return an action on a task as the cell reads it."""
        family, drop = map(int, key.split(","))
        order = self.memory[self.tasks[place]]["order"]
        return {"family": HEADS["family"][family], "drop_columns": order[: HEADS["drop"][drop]]}

    def _solved(self, place: int) -> dict[str, Any]:
        return self.memory[self.tasks[place]]["solved"]

    def _keep(self) -> None:
        scratch = self.path.with_suffix(".new")
        scratch.write_text(json.dumps(self.memory), "utf-8")
        scratch.replace(self.path)

    def _run(self, places: Sequence[int], cells: Sequence[str]) -> list[str]:
        """Return the output of cells, each in a new episode of its task; environments beyond them do nothing."""
        idle = self.size - len(places)
        self.envs.reset(seed=[*places, *places[:1] * idle])
        kinds = np.array([*[PYTHON] * len(cells), *[0] * idle])
        observed, *_ = self.envs.step({"kind": kinds, "text": (*cells, *["true"] * idle)})
        for place, failed, text in zip(places, observed["failed"], observed["text"], strict=False):
            if failed:  # no pipeline fails on these tables: the machine did, so that nothing is learned from it
                raise RuntimeError(f"A cell failed on {self.tasks[place]}, or took too long: {text[-500:]}")
        return list(observed["text"][: len(cells)])


def batched(items: Sequence[Any], size: int) -> Iterator[list[Any]]:
    """Return the items in lists of a size; the last may be shorter."""
    return (list(items[start : start + size]) for start in range(0, len(items), size))


def train(bridge: Bridge, rounds: int, seed: int) -> tuple[Policy, list[float]]:
    """Let a policy learn: in each round an episode of each task; the mean reward of each round."""
    policy, history = Policy(bridge.inputs, seed=seed), list[float]()
    places = range(len(bridge.tasks))
    for number in range(rounds):
        actions = [policy.act(bridge.inputs[place]) for place in places]
        rewards = [result["reward"] for result in bridge.solve(list(zip(places, actions, strict=True)))]
        policy.learn(list(zip(places, bridge.inputs, actions, rewards, strict=True)))
        history.append(float(np.mean(rewards)))
        if number < 10 or number % 50 == 49:
            sys.stdout.write(f"round {number + 1} of {rounds}: mean reward {history[-1]:.3f}\n")
            sys.stdout.flush()
    return policy, history


def evaluate(bridge: Bridge, act: Any, folder: Path, repeats: int) -> float:
    """Solve every task with the actions of a policy: the mean reward; a grading report a repeat goes to the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rewards: list[float] = []
    for repeat in range(repeats):
        results = bridge.solve([(place, act(x)) for place, x in enumerate(bridge.inputs)])
        rewards += [result["reward"] for result in results]
        reports = {"competition_reports": [result["report"] for result in results]}
        (folder / f"{repeat}.json").write_text(json.dumps(reports), "utf-8")
    return float(np.mean(rewards))


def best_fixed(bridge: Bridge) -> Action:
    """Return the action with the best mean reward over training tasks, after running it where it was not."""
    means = [
        np.mean([result["reward"] for result in bridge.solve([(place, action) for place in range(len(bridge.tasks))])])
        for action in ACTIONS
    ]
    return ACTIONS[int(np.argmax(means))]


def draw(rewards: Sequence[float], levels: dict[str, float], path: Path, window: int = 10) -> None:
    """Return the moving mean of the rewards in training, and the means on held-out tasks, as SVG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axes = figure.add_subplot()
    window = min(window, len(rewards))
    smooth = np.convolve(rewards, np.ones(window) / window, mode="valid")
    label = f"training seeds, mean of {window} rounds"
    axes.plot(np.arange(window, len(rewards) + 1), smooth, color="#0072b2", label=label)
    for (name, level), color in zip(levels.items(), ("#999999", "#e69f00", "#d55e00"), strict=True):
        axes.axhline(level, color=color, linestyle="--", linewidth=1, label=f"held-out seeds: {name}")
    axes.set(xlabel="rounds, of an episode of each task", ylabel="reward")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    with mpl.rc_context({"svg.hashsalt": "learn", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure.savefig(path, metadata={"Date": None, "Creator": None})


def main() -> None:
    """Train, evaluate, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="the folder for runs, reports, the policy and the curve")
    parser.add_argument("--tasks", default="synthetic-public-{}", help="ids of tasks by seed")
    parser.add_argument("--train", type=int, default=12, help="number of training tasks: seeds from 1")
    parser.add_argument(
        "--held-out", type=int, default=12, help=f"number of held-out tasks: seeds from {HELD_OUT}; 0: none"
    )
    parser.add_argument("--rounds", type=int, default=400, help="of an episode of each training task")
    parser.add_argument("--envs", type=int, default=2, help="environments at once")
    parser.add_argument("--repeats", type=int, default=5, help="evaluations of the frozen policy on each task")
    parser.add_argument("--reward", default="percentile", help="that of the folder's episodes so far")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-dir", type=Path, help="folder for prepared data, to be used again")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    named = {"reward": arguments.reward, "invalid": 0.0, "sandbox": "process", "data_dir": arguments.data_dir}
    named["step_timeout"] = 900

    @contextmanager
    def opened(name: str, first: int, count: int) -> Iterator[Bridge]:
        tasks = [arguments.tasks.format(seed) for seed in range(first, first + count)]
        bridge = Bridge(
            tasks, arguments.envs, arguments.output / f"{name}.json", runs_dir=arguments.output / name, **named
        )
        try:
            yield bridge
        finally:
            bridge.envs.close()

    # Without this, what runs in sandboxes would go on when this program is terminated.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with opened("train", 1, arguments.train) as bridge:
        policy, history = train(bridge, arguments.rounds, arguments.seed)
        fixed = best_fixed(bridge)
        frozen = Policy(bridge.inputs, seed=arguments.seed + 1)
    (arguments.output / "policy.json").write_text(json.dumps([matrix.tolist() for matrix in policy.weights]), "utf-8")
    (arguments.output / "rewards.json").write_text(json.dumps(history), "utf-8")
    fixed_choice = {name: options[choice] for (name, options), choice in zip(HEADS.items(), fixed, strict=True)}
    sys.stdout.write(f"fixed choice: {fixed_choice}\n")
    if not arguments.held_out:
        return
    reports = arguments.output / "reports"
    with opened("held-out", HELD_OUT, arguments.held_out) as bridge:
        levels = {
            "frozen": evaluate(bridge, frozen.act, reports / "frozen", arguments.repeats),
            "fixed": evaluate(bridge, lambda _x: fixed, reports / "fixed", 1),
            "learned": evaluate(bridge, lambda x: policy.act(x, greedy=True), reports / "learned", 1),
        }
    sys.stdout.write(f"mean reward on held-out tasks: {levels}\n")
    draw(history, levels, arguments.output / "curve.svg")
    sys.stdout.flush()
    for other in ("frozen", "fixed"):
        compared = ("compare", other, "learned", "--reports", str(reports), "--measure", "percentile")
        subprocess.run([sys.executable, "-m", "mleredux", *compared], check=True)
    used = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    sys.stdout.write(f"CPU seconds: {sum(usage.ru_utime + usage.ru_stime for usage in used):.0f}\n")


if __name__ == "__main__":
    main()
