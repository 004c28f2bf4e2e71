"""The result of a comparison: whether arm B is better than arm A, by how much, how certain, and on which tasks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from mleredux.models.formats import counted, plain

from mleredux_experiments.inference.errors import Interval
from mleredux_experiments.inference.power import Sample
from mleredux_experiments.results.measures import time_unit

if TYPE_CHECKING:
    import pandas as pd

    from mleredux_experiments.failures.counts import FailureDifference
    from mleredux_experiments.figures.pictures import Picture
    from mleredux_experiments.results.scores import TaskScores


def level(alpha: float) -> str:
    """Return the level of an interval as text, such as `95 %`."""
    return f"{plain(100 * (1 - alpha), 4)} %"


def limits(interval: Interval | None) -> dict[str, float | None]:
    """Return the limits of an interval and its level by name, for JSON."""
    return dict(zip(Interval._fields, interval or (None, None, None), strict=True))


_ABOVE = 1e-9
"""Limits closer to zero than this merely exclude zero; in points, these are the limits that are rounded to zero."""
Outcome = Literal["better", "worse", "equivalent", "not worse", "undecided", "cannot tell"]


@dataclass(frozen=True)
class TaskDifference:
    """The difference on one task.

    Attributes:
        a, b: Means of the arms over their runs.
        difference: b − a, positive if B is better.
        shrunken: The difference estimated from all tasks: d̄ + ω²/(ω² + σ²/K) · (d − d̄).
        q: Adjusted p-value of the difference on this task (Benjamini–Hochberg over tasks).
        runs: Number of runs in each arm.
    """

    task: str
    a: float
    b: float
    difference: float
    shrunken: float
    q: float
    runs: tuple[int, int]


@dataclass(frozen=True)
class Place:
    """The difference on some of the tasks: those of one category, split or metric."""

    kind: str
    name: str
    tasks: int
    difference: float
    interval: Interval | None
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class Comparison:
    """Comparison of B with A by one measure, paired by task. Differences are positive if B is better.

    Attributes:
        difference: Mean over tasks of the differences between mean values over runs, in the measure's unit.
        interval: Interval for tasks like these, with its actual level: by sign flips, or for shares by
            `bounded_limits`. It excludes zero if and only if `p` is at most its level of significance. None with one
            task.
        p: Sign-flip permutation test over tasks.
        adjusted: p adjusted for the number of arms compared with the baseline; if set, it replaces `p` in decisions.
        again: Interval for these tasks again, if only the seeds changed; None if seeds make no difference.
        by_source: Interval of the mean over data sources; None if no source has several tasks.
        improvement: Probability that a run of B is better than one of A on the same task (ties count half).
        equivalence: p-value of two one-sided tests that the difference is within ± margin; None without a margin, or
            with too few tasks for a decision.
        least: The smallest number of tasks for which the test can be significant.
        bounds: The difference if all missing runs were the worst or the best for B; None if none are missing.
        left_out: Number of runs or tasks that are left out, by reason.
        notes: Differences between the arms besides the agent.
        failures: Differences in the frequency of each category of failure; empty if failures are unknown.
    """

    a: str
    b: str
    measure: str
    unit: str
    alpha: float
    margin: float
    difference: float
    interval: Interval | None
    p: float
    wins: int
    ties: int
    losses: int
    improvement: float
    again: Interval | None
    by_source: Interval | None
    equivalence: float | None
    verdict: Outcome
    sample: Sample
    bounds: Interval | None
    deterministic: tuple[str, ...]
    left_out: dict[str, int]
    notes: tuple[str, ...]
    tasks: tuple[TaskDifference, ...]
    table: tuple[TaskScores, ...]
    places: tuple[Place, ...]
    failures: tuple[FailureDifference, ...] = ()
    adjusted: float | None = None
    least: int = 6

    @property
    def sentence(self) -> str:
        """Return the result in one sentence."""
        count = len(self.tasks)
        head = f"{self.b} wins {self.wins} and loses {self.losses} of {counted(count, 'task')}; "
        head += f"{self.amount(self.difference, plus=True)} {self.shown_unit[0]}, {self.between(self.interval)}"
        return f"{head}: {self._answer()}."

    @property
    def medals(self) -> str:
        """Return the number of runs with a medal in each arm, as text; empty if there are none."""
        runs = {arm: [task.arms[number] for task in self.table] for number, arm in enumerate((self.a, self.b))}
        counts = {arm: (sum(task.medals for task in own), sum(task.runs for task in own)) for arm, own in runs.items()}
        shares = [f"{arm} in {medals} of {counted(total, 'run')}" for arm, (medals, total) in counts.items()]
        return ", ".join(shares) if any(medals for medals, _ in counts.values()) else ""

    @property
    def shown_unit(self) -> tuple[str, float]:
        """Return the unit in which differences are printed, and how many of these make up the measure's unit: for
        times, a unit that suits the longest."""
        return time_unit(max(max(task.a, task.b) for task in self.tasks)) if self.unit == "h" else (self.unit, 1.0)

    def amount(self, value: float, *, plus: bool = False) -> str:
        """Return a difference as text, without its unit."""
        text = f"{value:+z.1f}" if self.unit == "points" else plain(value * self.shown_unit[1], 3, signed=True)
        return (text if plus else text.removeprefix("+")).replace("-", "−")

    def exactly(self, value: float) -> str:
        """Return an amount that the user chose, such as the margin, with its unit."""
        unit, factor = self.shown_unit
        return f"{plain(value * factor)} {unit}"

    def between(self, interval: Interval | None) -> str:
        """Return an interval as text, such as `95 % −1.2 to 19.0`."""
        if interval is None:
            return "no interval from one task"
        low, high = map(self.amount, interval[:2])
        near = 0.05 if self.unit == "points" else _ABOVE
        if 0 < interval.low < near or -near < interval.high < 0:  # the test excludes zero, but not what is near it
            low, high = (f"above {low}", high) if interval.low > 0 else (low, f"below {high}")
        most = f", the most that {len(self.tasks)} tasks allow" * (interval.level < 1 - self.alpha - _ABOVE)
        return f"{level(1 - interval.level)} {low} to {high}{most}"

    def _answer(self) -> str:
        match self.verdict:
            case "better" | "worse":
                p = plain(self.p, 2) if self.adjusted is None else f"{plain(self.adjusted, 2)}, adjusted for all arms"
                return f"{self.verdict} (p = {p})"
            case "equivalent":
                return f"equivalent within {self.exactly(self.margin)}"
            case "not worse":
                return f"not worse by more than {self.exactly(self.margin)}"
            case "cannot tell":
                return f"cannot tell; a decision at {plain(100 * self.alpha, 3)} % needs {self.least} tasks or more"
        smallest = self.sample.detectable
        if not self.sample.variance.of_mean(self.sample.seeds):
            return "undecided"
        if smallest is None:
            return f"undecided; so few tasks detect {self.sample.nothing} that is possible with a power of 80 %"
        amount = f"{self.sample.goal}{self.amount(smallest)} {self.shown_unit[0]}"
        return f"undecided; {len(self.tasks)} tasks detect {amount} with a power of 80 %"

    def record(self) -> dict[str, Any]:
        """Return the record that `--json` prints."""
        record = asdict(self)
        record.pop("interval")
        intervals = {"these_tasks_again": self.again, "by_source": self.by_source, "bounds": self.bounds}
        for group in ("places", "failures"):
            record[group] = [{**entry, **limits(entry.pop("interval"))} for entry in record[group]]
        record.pop("again")
        return {
            "sentence": self.sentence,
            "difference": record.pop("difference"),
            **limits(self.interval),
            **record,
            "detectable": self.sample.detectable,
            **{name: limit._asdict() if limit else None for name, limit in intervals.items()},
        }

    def plot(self) -> Picture:
        """Plot the differences of the tasks; notebooks display the result, and its `figure` is a matplotlib figure."""
        from mleredux_experiments.figures.pictures import Picture, forest

        question = f"On which tasks is {self.b} better than {self.a}?"
        return Picture("difference", question, self.sentence, partial(forest, self))

    @property
    def frame(self) -> pd.DataFrame:
        """Return one row per task."""
        import pandas as pd

        return pd.DataFrame([asdict(task) for task in self.tasks])

    def __str__(self) -> str:
        return self.sentence

    def _repr_markdown_(self) -> str:
        """Return the result as Markdown, for notebooks."""
        from mleredux_experiments.figures.tables import comparison_tables, markdown, score_table

        first, *others = map(markdown, (score_table(self.table), *comparison_tables(self)))
        return f"{first}\n**{self.sentence}**\n\n" + "\n".join(others)
