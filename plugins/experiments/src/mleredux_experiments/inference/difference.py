"""The result of a comparison: is arm B better than arm A, by how much, how sure, and where."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from mleredux_experiments.inference.errors import Interval
from mleredux_experiments.inference.power import Needed, Variance

if TYPE_CHECKING:
    import pandas as pd

    from mleredux_experiments.failures.counts import FailureDifference
    from mleredux_experiments.figures.pictures import Picture
    from mleredux_experiments.results.scores import TaskScores


def level(alpha: float) -> str:
    """The level of an interval as text: `95 %`."""
    return f"{100 * (1 - alpha):.4g} %"


Outcome = Literal["better", "worse", "equivalent", "not worse", "undecided"]


@dataclass(frozen=True)
class TaskDifference:
    """What is known of one task.

    Attributes:
        a, b: Means of the arms over their runs.
        difference: b − a, positive if B is better.
        shrunken: The difference as estimated with all tasks: d̄ + ω²/(ω² + σ²/K) · (d − d̄).
        q: Adjusted p-value of the difference on this task (Benjamini–Hochberg over tasks).
        runs: Number of runs of each arm.
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
    """The difference on some of the tasks: those of a category, split or metric."""

    kind: str
    name: str
    tasks: int
    difference: float
    low: float | None
    high: float | None
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class Comparison:
    """B against A by one measure, paired by task. Differences are positive if B is better.

    Attributes:
        difference: Mean over tasks of the difference of the means over runs, in the measure's unit.
        interval: Tasks like these: the two-level bootstrap interval; None with one task.
        p: Sign-flip permutation test over tasks.
        again: These tasks again: the interval if only the seeds changed; None with one seed.
        by_source: The interval clustered by data source; None if no source has several tasks.
        improvement: The chance that a run of B is better than one of A on the same task (ties count half).
        equivalence: The p-value of two one-sided tests that the difference is within ± margin; None without margin.
        bounds: The difference if missing runs had all been worst or best for B; None if none is missing.
        left_out: Why runs or tasks do not take part, with their number.
        notes: In what the arms differ besides the agent.
        failures: How often runs of either arm fail in which way; empty if that is not known.
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
    needed: Needed | None
    variance: Variance
    seeds: float
    bounds: Interval | None
    deterministic: tuple[str, ...]
    left_out: dict[str, int]
    notes: tuple[str, ...]
    tasks: tuple[TaskDifference, ...]
    table: tuple[TaskScores, ...]
    places: tuple[Place, ...]
    failures: tuple[FailureDifference, ...] = ()

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        count = len(self.tasks)
        head = f"{self.b} wins {self.wins} and loses {self.losses} of {count} task{'s' * (count != 1)}; "
        head += f"{self.amount(self.difference, plus=True)} {self.unit}, {self.between(self.interval)}"
        return f"{head}: {self._told()}."

    @property
    def medals(self) -> str:
        """In how many runs each arm has a medal; empty if none has."""
        runs = {arm: [task.arms[number] for task in self.table] for number, arm in enumerate((self.a, self.b))}
        counts = {arm: (sum(one.medals for one in own), sum(one.runs for one in own)) for arm, own in runs.items()}
        told = [f"{arm} in {medals} of {total} runs" for arm, (medals, total) in counts.items()]
        return ", ".join(told) if any(medals for medals, _ in counts.values()) else ""

    def amount(self, value: float, *, plus: bool = False) -> str:
        """A difference as text, without its unit."""
        text = f"{value:+z.1f}" if self.unit == "points" else f"{value:+z.3g}"
        return (text if plus else text.removeprefix("+")).replace("-", "−")

    def between(self, interval: Interval | None) -> str:
        """An interval as text: `95 % −1.2 to 19.0`."""
        if interval is None:
            return "no interval from one task"
        return f"{level(self.alpha)} {self.amount(interval.low)} to {self.amount(interval.high)}"

    def _told(self) -> str:
        match self.verdict:
            case "better" | "worse":
                return f"{self.verdict} (p = {self.p:.2g})"
            case "equivalent":
                return f"equivalent within {self.margin:g} {self.unit}"
            case "not worse":
                return f"not worse by more than {self.margin:g} {self.unit}"
        if self.needed is None:
            return "undecided" if self.difference or self.margin else "undecided; give a margin to test for equivalence"
        return f"undecided; {self.needed.sentence(separated=self.variance.separated)}"

    def record(self) -> dict[str, Any]:
        """What `--json` prints."""
        told = asdict(self)
        low, high = told.pop("interval") or (None, None)
        intervals = {"these_tasks_again": self.again, "by_source": self.by_source, "bounds": self.bounds}
        told.pop("again")
        return {
            "sentence": self.sentence,
            "difference": told.pop("difference"),
            "low": low,
            "high": high,
            **told,
            **{name: one._asdict() if one else None for name, one in intervals.items()},
        }

    def plot(self) -> Picture:
        """The differences of the tasks; notebooks show it, and `figure` is matplotlib's."""
        from mleredux_experiments.figures.pictures import Picture, forest

        return Picture("difference", f"On which tasks is {self.b} better than {self.a}?", self.sentence, forest(self))

    @property
    def frame(self) -> pd.DataFrame:
        """One row a task."""
        import pandas as pd

        return pd.DataFrame([asdict(one) for one in self.tasks])

    def __str__(self) -> str:
        return self.sentence

    def _repr_markdown_(self) -> str:
        """For notebooks."""
        from mleredux_experiments.figures.tables import comparison_tables, markdown, score_table

        first, *others = map(markdown, (score_table(self.table), *comparison_tables(self)))
        return f"{first}\n**{self.sentence}**\n\n" + "\n".join(others)
