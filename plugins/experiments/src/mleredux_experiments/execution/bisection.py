"""Bisection for the commit that changed an agent's score, in which each step is a sequential test."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from mleredux.errors import MlereduxError
from mleredux.models.formats import counted
from mleredux.plugin.command import Catalogue

from mleredux_experiments.execution.experiment import start
from mleredux_experiments.execution.plan import make_plan
from mleredux_experiments.inference.resampling import shuffled
from mleredux_experiments.results.measures import cells, measure
from mleredux_experiments.results.sources import load

Side = Literal["good", "bad"]
Values = Mapping[str, Sequence[float]]
"""Values of the runs of one commit, by task."""
_LEAST_SPREAD, _WEIGHT = 0.5, 0.92
"""The standard deviation assumed for deterministic agents, as a fraction of the difference between GOOD and BAD; and
the weight of evidence from shares, which is reduced because the runs that showed GOOD and BAD to differ overestimate
the difference.
"""


def log_ratio(values: Values, good: Values, bad: Values) -> float:
    """Return the logarithm of the Bayes factor for the hypothesis that runs belong to BAD rather than to GOOD.

    Scores on each task are assumed to be normal, with an unknown mean at each end and an unknown common variance, under
    noninformative priors. With n runs in total, each task contributes (n − 2)/2 · log(S_good/S_bad) + ½
    log(k_good/k_bad), where S is the sum of squares about the means and k the product of the numbers of runs, after the
    runs are added to that end. So a few runs at the ends do not give strong evidence. On tasks with two values, such as
    medals, each end has an unknown share of the higher one, under Jeffreys' prior, and evidence has a smaller weight.
    """
    from scipy.special import betaln

    total = 0.0
    for task, tested in values.items():
        g, b, x = np.array(good[task]), np.array(bad[task]), np.array(tested)
        if not (gap := float(b.mean() - g.mean())):
            continue
        if len(distinct := np.unique([*g, *b, *x])) == 2:
            high = [np.array([(end == distinct[1]).sum(), (end == distinct[0]).sum()]) + 0.5 for end in (g, b)]
            own = np.array([(x == distinct[1]).sum(), (x == distinct[0]).sum()])
            chances = [betaln(*(end + own)) - betaln(*end) for end in high]
            total += _WEIGHT * float(chances[1] - chances[0])
            continue
        sums = [
            sum(float(((group - group.mean()) ** 2).sum()) for group in ends) + (_LEAST_SPREAD * gap) ** 2
            for ends in ((np.append(g, x), b), (g, np.append(b, x)))
        ]
        count = len(g) + len(b) + len(x)
        sizes = (len(g) + len(x)) * len(b) / (len(g) * (len(b) + len(x)))
        total += (count - 2) / 2 * math.log(sums[0] / sums[1]) + math.log(sizes) / 2
    return total


def side(values: Values, good: Values, bad: Values, alpha: float) -> Side | None:
    """Test sequentially whether runs belong to GOOD or BAD, with both error rates at most alpha; None: more runs are
    needed."""
    bound, ratio = math.log((1 - alpha) / alpha), log_ratio(values, good, bad)
    return "bad" if ratio >= bound else "good" if ratio <= -bound else None


def seeds_needed(good: Values, bad: Values, alpha: float) -> int:
    """Return the approximate number of seeds per commit that a step needs, from the distance between GOOD and BAD in
    standard deviations."""
    distance = 0.0
    for task in good.keys() & bad.keys():
        g, b = np.array(good[task]), np.array(bad[task])
        spread = (len(g) * g.var() + len(b) * b.var()) / max(len(g) + len(b) - 2, 1)
        gap = float(b.mean() - g.mean()) ** 2
        distance += gap / max(float(spread), _LEAST_SPREAD**2 * gap) if gap else 0.0
    return math.ceil(4 * math.log((1 - alpha) / alpha) / distance) if distance else 0


def separated(good: Values, bad: Values, alpha: float) -> bool:
    """Return whether GOOD and BAD differ, by permutation tests on each task combined with Fisher's method."""
    from scipy.stats import combine_pvalues

    p = [shuffled(np.array(good[task]), np.array(bad[task])) for task in sorted(good.keys() & bad.keys())]
    return bool(p and combine_pvalues(p).pvalue <= alpha)


@dataclass(frozen=True)
class Step:
    """A commit that was run.

    Attributes:
        decided: The end to which it belongs; None: undecided after the maximum number of seeds.
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
        history: References from good to bad, the oldest first.
        tasks: Ids of tasks.
        arm: Fields of the arms other than the agent: sandbox, limits, options.
        chosen: The measure.
        alpha: Probability of a wrong answer over all steps.
        least, most: The initial number of seeds at both ends, and the maximum number of seeds per commit.
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
    report: Callable[[str], None] = lambda _text: None
    steps: list[Step] = field(default_factory=list)
    _seeds: int = 0

    @property
    def name(self) -> str:
        """Return the experiment's name, which is the same for the same question, so that a killed search can be
        continued."""
        search = repr((self.history[0], self.history[-1], self.tasks, sorted(map(repr, self.arm.items()))))
        return f"bisect-{hashlib.sha256(search.encode()).hexdigest()[:12]}"

    def find(self) -> tuple[str, str]:
        """Return the last good and the first bad reference or, if steps are undecided, the narrowest known range.

        Raises:
            MlereduxError: GOOD and BAD do not differ in the runs made, or so few runs can't show that they do.
        """
        low, high = 0, len(self.history) - 1
        good, bad, self._seeds = self._ends(low, high)
        level = self.alpha / max(math.ceil(math.log2(max(high, 2))), 1)
        while high - low > 1:
            middle = (low + high) // 2
            decided = self._decide(middle, good, bad, level)
            if decided is None:
                self._report_seeds(level)
                break
            low, high = (middle, high) if decided == "good" else (low, middle)
        return self.history[low], self.history[high]

    def _report_seeds(self, level: float) -> None:
        good, bad = (self._values(end, self.most) for end in (0, len(self.history) - 1))
        if good and bad and (seeds := seeds_needed(good, bad, level)) > self.most:
            self.report(f"For an effect this small, a step needs about {seeds} seeds; the maximum is {self.most}.")

    def _ends(self, low: int, high: int) -> tuple[Values, Values | None, int]:
        for seeds in range(self.least, self.most + 1):
            good, bad = self._values(low, seeds), self._values(high, seeds)
            if good is None:
                message = "GOOD produces no valid submission."
                raise MlereduxError(message, hint=f"See `mleredux experiment status {self.name}`.")
            if bad is None or self._separate(good, bad, self.most):
                break
        else:
            if (enough := next(filter(self._suffices, itertools.count(self.most)))) > self.most:
                sizes = f"{counted(self.most, 'seed')} on {counted(len(self.tasks), 'task')}"
                message = f"{sizes} can't separate GOOD and BAD, whatever their scores."
                raise MlereduxError(message, hint=f"Use --seeds {enough} or more, or add tasks.")
            message = f"GOOD and BAD do not differ in {self.chosen} after {counted(self.most, 'seed')}."
            raise MlereduxError(message, hint="Add tasks or seeds, or choose another --measure.")
        self._note(low, "good", good, seeds)
        self._note(high, "bad", bad, seeds)
        return good, bad, seeds

    def _separate(self, good: Values, bad: Values, most: int) -> bool:
        """Return whether the ends differ, at the level of each test with this maximum number of seeds."""
        return separated(good, bad, self.alpha / max(most - self.least + 1, 1))

    def _suffices(self, most: int) -> bool:
        """Return whether this maximum number of seeds can separate ends that have no score in common."""
        good, bad = (dict.fromkeys(self.tasks, [end] * most) for end in (0.0, 1.0))
        return self._separate(good, bad, most)

    def _decide(self, number: int, good: Values, bad: Values | None, level: float) -> Side | None:
        """Return the end to which a commit belongs; one without valid submissions is BAD, and if BAD has none, all
        others are GOOD.

        The ends get as many seeds as the commit has. The runs by which they were found to differ overestimate the
        difference.
        """
        decided: Side | None = None
        values: Values | None = {}
        seeds = 0
        while decided is None and seeds < self.most:
            seeds += 1
            values = self._values(number, seeds)
            if bad is not None and seeds > self._seeds:
                good, bad = self._values(0, seeds) or good, self._values(len(self.history) - 1, seeds) or bad
            decided = "bad" if values is None else "good" if bad is None else side(values, good, bad, level)
        self._note(number, decided, values, seeds)
        return decided

    def _note(self, number: int, decided: Side | None, values: Values | None, seeds: int) -> None:
        means = {task: float(np.mean(scores)) for task, scores in (values or {}).items()}
        runs = seeds * len(self.tasks)
        self.steps.append(Step(self.history[number], decided, runs, means))
        self.report(f"{commit_of(self.history[number])[:12]} is {decided or 'undecided'} after {counted(runs, 'run')}")

    def _values(self, number: int, seeds: int) -> Values | None:
        """Return the values of a commit for this number of seeds, making missing runs; None if the runs of some task
        have no values."""
        name = commit_of(self.history[number])[:16]
        document = {
            "experiment": {"name": self.name, "tasks": list(self.tasks), "seeds": list(range(seeds))},
            "arms": {name: {**self.arm, "agent": self.history[number]}},
        }
        plan = make_plan(document)
        experiment = start(plan, self.catalogue, runs_dir=self.runs_dir, data_dir=self.data_dir, grow=True)
        experiment.run(jobs=self.jobs, only=lambda cell: cell.arm == name and cell.seed < seeds)
        results = load(experiment.store.path, experiment=self.name)
        rows = [row for row in results.rows if row.arm == name and row.seed < seeds and row.counts]
        lacking = [task for task in self.tasks if not any(row.task == task for row in rows)]
        if lacking:
            raise MlereduxError(
                f"{self.chosen} of {name} on {', '.join(lacking)} is unknown.",
                hint=f"See `mleredux experiment status {self.name}`, and retry the broken runs.",
            )
        values = cells(rows, measure(self.chosen))
        return {task: list(map(float, values[task])) for task in self.tasks} if len(values) == len(self.tasks) else None


def commit_of(reference: str) -> str:
    """Return the commit of a pinned reference."""
    return reference.partition("#")[0].rpartition("@")[2]
