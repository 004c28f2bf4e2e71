"""The analysis of an experiment, or of any runs: everything that its report shows, as one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mleredux.errors import MlereduxError

from mleredux_experiments.analysis import curves
from mleredux_experiments.failures.counts import FailureCount, failure_counts
from mleredux_experiments.inference.comparison import compare
from mleredux_experiments.inference.difference import Comparison
from mleredux_experiments.inference.errors import holm, holm_levels
from mleredux_experiments.inference.ranking import Rank, ranking
from mleredux_experiments.results.measures import MEASURES, Estimate, cells, deterministic, estimate, measure, summarise
from mleredux_experiments.results.scores import counts
from mleredux_experiments.results.table import Results, pairing
from mleredux_experiments.results.uniformity import check_arms, usual_measure

if TYPE_CHECKING:
    import pandas as pd

_FIRST = ("percentile", "any_medal")
"""Measures that a comparison shows first, in addition to the chosen one."""


@dataclass(frozen=True)
class ArmAnalysis:
    """The analysis of one arm.

    Attributes:
        estimates: Estimate over all tasks of the arm, by measure.
        splits, categories: Estimate of the primary measure, by split or category.
        attempts: pass@k and related statistics, if the measure is a share.
        time, cost: Medals over hours and over dollars, with the same largest x for all arms.
        first_medal: The time to the first medal.
        per_dollar: Medals per dollar, and the standard error; None if no cost is known.
        outcomes: Number of runs by outcome.
        failures: Frequency of each category of failure, with an example.
    """

    name: str
    runs: int
    deterministic: bool
    left_out: dict[str, int]
    estimates: dict[str, Estimate]
    splits: dict[str, Estimate]
    categories: dict[str, Estimate]
    attempts: curves.Attempts | None
    time: curves.Curve | None
    cost: curves.Curve | None
    first_medal: curves.Survival | None
    selection: curves.Selection | None
    per_dollar: tuple[float, float | None] | None
    outcomes: dict[str, int]
    failures: tuple[FailureCount, ...]


@dataclass(frozen=True, eq=False)
class Analysis:
    """The results of an analysis.

    Attributes:
        comparisons: Each arm against the baseline, which is the first arm. With several comparisons, decisions use
            p-values adjusted for their number (Holm), and intervals have the levels of Holm's steps.
        holm: The adjusted p-values.
        ranking: All arms, ranked by Bradley–Terry on their common tasks.
        changes: Changes to the experiment's plan after it was frozen.
        equivalence: Whether the analysis tests for equivalence within the margin.
        results: The table of runs.
    """

    name: str
    question: str
    measure: str
    margin: float
    alpha: float
    baseline: str
    arms: tuple[ArmAnalysis, ...]
    comparisons: tuple[Comparison, ...]
    holm: tuple[float, ...]
    ranking: tuple[Rank, ...]
    notes: tuple[str, ...]
    changes: tuple[str, ...] = ()
    equivalence: bool = False
    results: Results = field(default=Results(()), repr=False)

    @property
    def sentences(self) -> list[str]:
        """Return one sentence per comparison that states its result."""
        return [pair.sentence for pair in self.comparisons]

    @property
    def remarks(self) -> list[str]:
        """Return changes of the plan, and notes on runs and on differences between arms other than the agent."""
        of_arms = (note for pair in self.comparisons for note in pair.notes)
        return list(dict.fromkeys((*self.changes, *self.notes, *of_arms)))

    def arm(self, name: str) -> ArmAnalysis:
        """Return an arm by name."""
        return next(arm for arm in self.arms if arm.name == name)

    def compare(self, a: str, b: str, measure: str | None = None) -> Comparison:
        """Compare any two arms by any measure."""
        same = measure in (None, self.measure)
        margin, equivalence = (self.margin, self.equivalence) if same else (0.0, False)
        what = measure or self.measure
        return compare(self.results, a, b, what, margin=margin, alpha=self.alpha, equivalence=equivalence)

    def record(self) -> dict[str, Any]:
        """Return the record that `--json` prints and `analysis.json` contains."""
        fields = {key: value for key, value in self.__dict__.items() if key != "results"}
        return {
            **fields,
            "sentences": self.sentences,
            "arms": [asdict(arm) for arm in self.arms],
            "comparisons": [pair.record() for pair in self.comparisons],
            "ranking": [asdict(rank) for rank in self.ranking],
        }

    def document(self) -> dict[str, Any]:
        """Return the record in a form that is valid JSON, without infinite numbers."""
        from pydantic_core import from_json, to_json

        document: dict[str, Any] = from_json(to_json(self.record(), inf_nan_mode="null", fallback=str))
        return document

    @property
    def frame(self) -> pd.DataFrame:
        """Return one row per arm and measure."""
        import pandas as pd

        named = ((arm.name, name, estimate) for arm in self.arms for name, estimate in arm.estimates.items())
        return pd.DataFrame([{"arm": arm, "measure": name, **asdict(estimate)} for arm, name, estimate in named])

    def _repr_html_(self) -> str:
        """Return the content of the report for notebooks."""
        from mleredux_experiments.figures.pictures import pictures
        from mleredux_experiments.figures.report import page

        return page(self, pictures(self), "body.html.j2")


def analyse(
    results: Results,
    chosen: str | None = None,
    *,
    arms: Sequence[str] = (),
    margin: float = 0.0,
    alpha: float = 0.05,
    equivalence: bool = False,
    name: str = "Runs",
    question: str = "",
    changes: Sequence[str] = (),
    whole: bool = True,
) -> Analysis:
    """Analyze runs.

    Args:
        chosen: The measure; None: the default of these runs.
        arms: The arms in order, the baseline first; empty: all arms, sorted by name.
        whole: Whether to also compute all measures, curves, validation and ranks, which take most of the time.
        equivalence: Whether to test that the arms differ by less than the margin, instead of whether they differ.

    Raises:
        MlereduxError: There are no runs, or they are not comparable.
    """
    order = [arm for arm in arms if arm in results.arms] or sorted(results.arms)
    if not order:
        raise MlereduxError("There are no runs to analyze.", hint="Run an experiment first, or specify another folder.")
    results = results.keep(row for arm in order for row in results.arms[arm])
    check_arms(results)
    rows = results.arms
    chosen = chosen or usual_measure(list(rows.values()))
    what = measure(chosen)
    hours = max((row.hours or 0 for row in results.rows if row.counts), default=0) or None
    dollars = max((row.cost_usd or 0 for row in results.rows if row.counts), default=0) or None
    names = [name for name in dict.fromkeys((*MEASURES, chosen)) if whole or name in (*_FIRST, chosen)]
    wanted = [own.name for own in map(measure, names) if own.averaged and own.is_ranked(results.rows)]
    known = sorted({task for arm in order for task in cells(rows[arm], what)}) if chosen in wanted else []
    analyses = [_arm(results, arm, chosen, wanted, alpha, hours, dollars, known, whole) for arm in order]
    notes = results.remarks(order)

    def against(arm: str, level: float) -> Comparison:
        return compare(results, order[0], arm, what, margin=margin, alpha=level, equivalence=equivalence)

    comparisons = []
    for arm in order[1:]:
        try:
            comparisons.append(against(arm, alpha))
        except MlereduxError as error:
            notes.append(str(error))
    p = [pair.p for pair in comparisons]
    adjusted, levels = holm(p), holm_levels(p, alpha)
    if margin:  # Holm's steps follow p, and would give other levels to decisions within the margin
        adjusted, levels = [min(level * len(p), 1.0) for level in p], [alpha / max(len(p), 1)] * len(p)
    if len(comparisons) > 1:
        decisions = zip(comparisons, levels, adjusted, strict=True)
        comparisons = [replace(against(pair.b, level), adjusted=p) for pair, level, p in decisions]
    sign = -1.0 if what.lower else 1.0
    key = pairing(rows.values())
    table = {arm: {task: sign * value for task, value in cells(rows[arm], what, key).items()} for arm in order}
    ranks = ranking(table, what.share) if chosen in wanted and whole else []
    return Analysis(
        name=name,
        question=question,
        measure=what.name,
        margin=margin,
        alpha=alpha,
        baseline=order[0],
        arms=tuple(analyses),
        comparisons=tuple(comparisons),
        holm=tuple(adjusted),
        ranking=tuple(ranks),
        notes=tuple(dict.fromkeys(notes)),
        changes=tuple(changes),
        equivalence=equivalence,
        results=results,
    )


def _arm(
    results: Results,
    arm: str,
    chosen: str,
    wanted: Sequence[str],
    alpha: float,
    hours: float | None,
    dollars: float | None,
    known: Sequence[str],
    whole: bool,
) -> ArmAnalysis:
    rows, what = results.arms[arm], measure(chosen)
    estimates = {name: summarise(results, rows, measure(name), None, alpha) for name in wanted}
    if (primary := estimates.get(what.name)) and (of_all := summarise(results, rows, what, known, alpha)):
        estimates[what.name] = replace(primary, missing=of_all.missing, bounds=of_all.bounds)
    groups: dict[str, dict[str, Estimate]] = {"split": {}, "category": {}}
    values = cells(rows, what) if chosen in wanted else {}
    for kind, by_name in groups.items():
        for name in sorted({str(getattr(results.fact(task), kind) or "").strip() for task in values} - {""}):
            own = {task: row for task, row in values.items() if str(getattr(results.fact(task), kind)).strip() == name}
            if (estimated := estimate(own, what, alpha)) is not None:
                by_name[name] = estimated
    return ArmAnalysis(
        name=arm,
        runs=sum(row.counts for row in rows),
        deterministic=deterministic(rows),
        left_out=results.keep(rows).left_out,
        estimates={name: replace(item, seeds=()) for name, item in estimates.items() if item is not None},
        splits=groups["split"],
        categories=groups["category"],
        attempts=curves.attempts(rows, what, alpha) if chosen in wanted else None,
        time=curves.over_time(rows, most=hours) if whole else None,
        cost=curves.over_cost(rows, most=dollars) if whole else None,
        first_medal=curves.time_to_medal(rows),
        selection=curves.selection(rows) if whole else None,
        per_dollar=curves.medals_per_dollar(rows),
        outcomes=counts(rows),
        failures=failure_counts(rows),
    )
