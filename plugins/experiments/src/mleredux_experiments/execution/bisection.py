"""Which commit of an agent changed its score: bisection, where each step is a sequential test."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from mleredux.errors import MlereduxError
from mleredux.plugin.command import Catalogue

from mleredux_experiments.execution.experiment import start
from mleredux_experiments.execution.plan import make_plan
from mleredux_experiments.inference.resampling import shuffled
from mleredux_experiments.results.measures import cells, measure
from mleredux_experiments.results.sources import load

Side = Literal["good", "bad"]
Values = Mapping[str, Sequence[float]]
"""Values of the runs of one commit by task."""
_LEAST_SPREAD = 0.25
"""The standard deviation assumed of deterministic agents, in parts of the difference between GOOD and BAD."""


def log_ratio(values: Values, good: Values, bad: Values) -> float:
    """The log of the likelihood ratio of BAD to GOOD for normal scores with a common variance in each task.

    Σ (b_t − g_t)/σ_t² · (x − (g_t + b_t)/2) over the runs x of each task t, of which g_t and b_t are the means.
    """
    total = 0.0
    for task, found in values.items():
        g, b = np.array(good[task]), np.array(bad[task])
        gap = float(b.mean() - g.mean())
        if not gap:
            continue
        freedom = max(len(g) + len(b) - 2, 1)
        spread = math.sqrt(float(((g - g.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum()) / freedom)
        sigma = max(spread, _LEAST_SPREAD * abs(gap))
        total += float((gap / sigma**2 * (np.array(found) - (g.mean() + b.mean()) / 2)).sum())
    return total


def side(values: Values, good: Values, bad: Values, alpha: float) -> Side | None:
    """Wald's sequential test (1945) of GOOD against BAD, both errors at most alpha; None: more runs are needed."""
    bound, found = math.log((1 - alpha) / alpha), log_ratio(values, good, bad)
    return "bad" if found >= bound else "good" if found <= -bound else None


def separated(good: Values, bad: Values, alpha: float) -> bool:
    """Whether GOOD and BAD differ: a permutation test on each task, combined by Fisher's method."""
    from scipy.stats import combine_pvalues

    p = [shuffled(np.array(good[task]), np.array(bad[task])) for task in sorted(good.keys() & bad.keys())]
    return bool(p and combine_pvalues(p).pvalue <= alpha)


@dataclass(frozen=True)
class Step:
    """A commit that was run.

    Attributes:
        decided: To which end it belongs; None: undecided after the maximum number of seeds.
        runs: Number of runs.
    """

    commit: str
    decided: Side | None
    runs: int
    means: dict[str, float]


@dataclass
class Bisection:
    """The search for the first bad commit.

    Args:
        history: References from good to bad, oldest first.
        tasks: Ids of tasks.
        arm: Fields of the arms besides the agent: sandbox, limits, options.
        chosen: The measure.
        alpha: Probability of a wrong answer, over all steps.
        least, most: Number of seeds of the two ends, and maximum number of seeds of each commit.
    """

    history: Sequence[str]
    tasks: Sequence[str]
    arm: Mapping[str, Any]
    catalogue: Catalogue
    chosen: str = "score"
    alpha: float = 0.05
    least: int = 3
    most: int = 8
    jobs: int = 1
    runs_dir: Path | str | None = None
    data_dir: Path | str | None = None
    tell: Callable[[str], None] = lambda _text: None
    steps: list[Step] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The experiment's name, the same for the same question, so that it is continued after a kill."""
        asked = repr((self.history[0], self.history[-1], self.tasks, sorted(map(repr, self.arm.items()))))
        return f"bisect-{hashlib.sha256(asked.encode()).hexdigest()[:12]}"

    def find(self) -> tuple[str, str]:
        """The last good and the first bad reference; with undecided steps, the narrowest range known.

        Raises:
            MlereduxError: GOOD and BAD do not differ by what was run.
        """
        low, high = 0, len(self.history) - 1
        good, bad = self._ends(low, high)
        level = self.alpha / max(math.ceil(math.log2(max(high, 2))), 1)
        while high - low > 1:
            middle = (low + high) // 2
            decided = self._decide(middle, good, bad, level)
            if decided is None:
                break
            low, high = (middle, high) if decided == "good" else (low, middle)
        return self.history[low], self.history[high]

    def _ends(self, low: int, high: int) -> tuple[Values, Values | None]:
        looks = range(self.least, self.most + 1)
        for seeds in looks:
            good, bad = self._values(low, seeds), self._values(high, seeds)
            if good is None:
                raise MlereduxError(
                    "GOOD submits nothing valid.", hint=f"See `mleredux experiment status {self.name}`; choose another."
                )
            if bad is None or separated(good, bad, self.alpha / len(looks)):
                break
        else:
            raise MlereduxError(
                f"GOOD and BAD do not differ in {self.chosen} after {self.most} seeds.",
                hint="Add tasks or seeds, or choose another --measure.",
            )
        self._note(low, "good", good, seeds)
        self._note(high, "bad", bad, seeds)
        return good, bad

    def _decide(self, number: int, good: Values, bad: Values | None, level: float) -> Side | None:
        """To which end a commit belongs; if it submits nothing valid, or only BAD does, that decides."""
        found: Side | None = None
        values: Values | None = {}
        seeds = 0
        while found is None and seeds < self.most:
            seeds += 1
            values = self._values(number, seeds)
            found = "bad" if values is None else "good" if bad is None else side(values, good, bad, level)
        self._note(number, found, values, seeds)
        return found

    def _note(self, number: int, decided: Side | None, values: Values | None, seeds: int) -> None:
        means = {task: float(np.mean(found)) for task, found in (values or {}).items()}
        runs = seeds * len(self.tasks)
        self.steps.append(Step(self.history[number], decided, runs, means))
        self.tell(f"{commit_of(self.history[number])[:12]} is {decided or 'undecided'} after {runs} runs")

    def _values(self, number: int, seeds: int) -> Values | None:
        """Values of a commit with so many seeds; runs that are missing are made. None: no run of a task has one."""
        name = commit_of(self.history[number])[:16]
        document = {
            "experiment": {"name": self.name, "tasks": list(self.tasks), "seeds": list(range(seeds))},
            "arms": {name: {**self.arm, "agent": self.history[number]}},
        }
        plan = make_plan(document)
        found = start(plan, self.catalogue, runs_dir=self.runs_dir, data_dir=self.data_dir, grow=True)
        found.run(jobs=self.jobs, only=lambda cell: cell.arm == name and cell.seed < seeds)
        results = load(found.store.path, experiment=self.name)
        rows = [row for row in results.rows if row.arm == name and row.seed < seeds and row.counts]
        lacking = [task for task in self.tasks if not any(row.task == task for row in rows)]
        if lacking:
            raise MlereduxError(
                f"{self.chosen} of {name} on {', '.join(lacking)} is not known.",
                hint=f"See `mleredux experiment status {self.name}`, and run what broke again.",
            )
        values = cells(rows, measure(self.chosen))
        return {task: list(map(float, values[task])) for task in self.tasks} if len(values) == len(self.tasks) else None


def commit_of(reference: str) -> str:
    """The commit of a pinned reference."""
    return reference.partition("#")[0].rpartition("@")[2]
