"""Power: how many tasks or seeds a difference needs, and the smallest difference that a design detects.

n = (z_{1−α/2} + z_{1−β})² (ω² + σ²_A/K_A + σ²_B/K_B) / δ² (Miller 2024, arXiv:2411.00640, section 5), where ω² is the
variance of the true difference between tasks and σ² the variance of a run within a task.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from mleredux_experiments.inference.errors import normal


@dataclass(frozen=True)
class Variance:
    """The variance of a paired difference.

    Attributes:
        between: ω², of the true difference between tasks.
        within_a: σ²_A, of the runs of an arm on one task.
        within_b: σ²_B.
        separated: Whether the two can be told apart: each arm has several runs of some task.
    """

    between: float
    within_a: float = 0.0
    within_b: float = 0.0
    separated: bool = True

    def of_mean(self, seeds: float) -> float:
        """Variance of a task's difference with so many seeds in each arm."""
        return self.between + (self.within_a + self.within_b) / seeds


@dataclass(frozen=True)
class Needed:
    """What detects a difference.

    Attributes:
        difference: The difference to detect.
        tasks: Number of tasks, with the seeds as they are.
        seeds: Number of seeds for each arm, with the tasks as they are; None: no number of seeds suffices.
        more_tasks: Tasks in addition to those there are.
        more_seeds: Seeds in addition.
        detectable: The smallest difference that the present design detects.
        floor: The smallest difference that these tasks could detect with any number of seeds.
    """

    difference: float
    tasks: int
    seeds: int | None
    more_tasks: int
    more_seeds: int | None
    detectable: float
    floor: float

    def at_least(self, more_tasks: int, present: int, *, seeds_help: bool) -> Needed:
        """The same with at least so many tasks more than are present, or one more seed."""
        more = max(more_tasks, self.more_tasks)
        seeds = max(self.more_seeds or 0, 1) if seeds_help and self.more_seeds is not None else None
        all_seeds = None if seeds is None or self.seeds is None else self.seeds + seeds - (self.more_seeds or 0)
        return replace(self, more_tasks=more, tasks=present + more, more_seeds=seeds, seeds=all_seeds)

    def sentence(self, *, separated: bool = True) -> str:
        """What would decide."""
        tasks = f"{self.more_tasks} more task{'s' if self.more_tasks > 1 else ''} would tell"
        if not separated:
            return f"{tasks}; with one seed a task, the effect of more seeds is unknown"
        if self.seeds is None:
            return f"{tasks}; no number of seeds suffices: add tasks"
        return f"{tasks}, or {self.more_seeds} more seed{'s' if self.more_seeds != 1 else ''} a task"


def factor(alpha: float = 0.05, power: float = 0.8) -> float:
    """z_{1−α/2} + z_{1−β}: 2.80 for a test at 5 % with a power of 80 %."""
    return normal(1 - alpha / 2) + normal(power)


def tasks_needed(
    difference: float, variance: Variance, seeds: float = 1, alpha: float = 0.05, power: float = 0.8
) -> int:
    """Number of tasks that detect a difference; 969 for δ = .03, ω² = 1/9, σ² = 0 (Miller 2024, section 5)."""
    return math.ceil(factor(alpha, power) ** 2 * variance.of_mean(seeds) / difference**2 - 1e-9)


def seeds_needed(
    difference: float, variance: Variance, tasks: int, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """Number of seeds for each arm that detect a difference on so many tasks; None if no number suffices."""
    room = tasks * (difference / factor(alpha, power)) ** 2 - variance.between
    if room <= 0:
        return None
    return max(1, math.ceil((variance.within_a + variance.within_b) / room - 1e-9))


def detectable(variance: Variance, tasks: int, seeds: float, alpha: float = 0.05, power: float = 0.8) -> float:
    """The smallest difference that so many tasks and seeds detect."""
    return factor(alpha, power) * math.sqrt(variance.of_mean(seeds) / tasks)


def power_of(difference: float, variance: Variance, tasks: int, seeds: float, alpha: float = 0.05) -> float:
    """The chance to detect a difference, by the normal approximation."""
    from scipy.special import ndtr

    spread = math.sqrt(variance.of_mean(seeds) / tasks)
    if not spread:
        return 1.0 if difference else alpha
    return float(ndtr(abs(difference) / spread - normal(1 - alpha / 2)))


def needed(
    difference: float, variance: Variance, tasks: int, seeds: float, alpha: float = 0.05, power: float = 0.8
) -> Needed:
    """What a design with so many tasks and seeds lacks to detect a difference."""
    all_tasks = max(tasks_needed(difference, variance, seeds, alpha, power), 2)
    all_seeds = seeds_needed(difference, variance, tasks, alpha, power)
    return Needed(
        difference=difference,
        tasks=all_tasks,
        seeds=all_seeds,
        more_tasks=max(all_tasks - tasks, 0),
        more_seeds=None if all_seeds is None else max(math.ceil(all_seeds - seeds), 0),
        detectable=detectable(variance, tasks, seeds, alpha, power),
        floor=factor(alpha, power) * math.sqrt(variance.between / tasks),
    )
