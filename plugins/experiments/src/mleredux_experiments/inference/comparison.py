"""Paired comparison of two arms: tasks differ much more than agents do, so each task is its own control."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from mleredux.errors import MlereduxError

from mleredux_experiments.failures.counts import failure_differences
from mleredux_experiments.inference.difference import Comparison, Outcome, Place, TaskDifference
from mleredux_experiments.inference.errors import (
    TIE,
    Array,
    Interval,
    benjamini_hochberg,
    improvement,
    means_of,
    student,
)
from mleredux_experiments.inference.power import Sample, Variance, variance_of
from mleredux_experiments.inference.resampling import Evidence, Scale, paired_interval, shuffled, sign_flip
from mleredux_experiments.results.measures import Measure, bounds_of, cells, check_measurable, deterministic, measure
from mleredux_experiments.results.scores import task_scores
from mleredux_experiments.results.table import Results, Row, grouped, pairing, source
from mleredux_experiments.results.uniformity import check_arms, check_limits, usual_measure

_OF_SCORES = ("score", "reward", "gap_to_median", "gap_to_gold")
"""Measures that are undefined for a run with an infinite score."""


def compare(
    results: Results,
    a: str,
    b: str,
    chosen: str | Measure | None = None,
    *,
    margin: float = 0.0,
    alpha: float = 0.05,
    seed: int = 0,
    equivalence: bool = False,
) -> Comparison:
    """Compare arm B with arm A, its baseline.

    Args:
        a, b: Arms, as passed to `Results.arm`.
        chosen: The measure; None: the default of these runs.
        margin: The largest difference that does not matter, in the measure's unit.
        equivalence: Whether to test that they differ by less than the margin, instead of whether they differ.

    Raises:
        MlereduxError: Equivalence is requested without a margin, the arms have no task in common, or their runs are not
            comparable.
    """
    rows = {"a": results.arm(a), "b": results.arm(b)}
    what = chosen if isinstance(chosen, Measure) else measure(chosen or usual_measure(list(rows.values())))
    if a == b:
        raise MlereduxError(f"{a} is compared with itself.", hint="Specify two arms.")
    if equivalence and not margin:
        raise MlereduxError("Equivalence requires a margin.", hint="Specify the largest negligible difference.")
    both = results.keep([*rows["a"], *rows["b"]])
    check_arms(both)
    notes = (*check_limits(both), *filter(None, map(results.note_on, (a, b))))
    key = pairing(rows.values())
    pairs, left_out = _paired(both, rows["a"], rows["b"], what, key)
    tasks = list(pairs)
    reversed_ = what.lower or (not what.averaged and any(row.lower_is_better for row in both.rows if key(row) in pairs))
    sign = -1.0 if reversed_ else 1.0
    cells_a, cells_b = [sign * pairs[task][0] for task in tasks], [sign * pairs[task][1] for task in tasks]
    differences = means_of(cells_b) - means_of(cells_a)
    difference, parts = float(differences.mean()), variance_of(cells_a, cells_b)
    count, scale = len(tasks), Scale(what.reach, what.share)
    evidence, p = Evidence.of(differences, scale), sign_flip(differences)
    interval = evidence.interval(alpha, p) if count > 1 else None
    seeds = 1 / float(np.mean([0.5 / len(x) + 0.5 / len(y) for x, y in zip(cells_a, cells_b, strict=True)]))
    sample = Sample(parts, count, seeds, alpha, 0.8, *scale, margin, equivalence)
    decidable = margin and count >= sample.least
    within = max(evidence.above(-margin), evidence.below(margin)) if decidable else None
    verdict = _verdict(difference, p, evidence, within, margin, sample)
    by_task = tuple(_task_differences(tasks, cells_a, cells_b, parts, sign, seed))
    return Comparison(
        a=a,
        b=b,
        measure=what.name,
        unit=what.points,
        alpha=alpha,
        margin=margin,
        difference=difference,
        interval=interval,
        p=p,
        **_record_of(differences),
        improvement=float(np.mean([improvement(x, y) for x, y in zip(cells_a, cells_b, strict=True)])),
        again=_again(cells_a, cells_b, alpha, what.reach or np.inf),
        by_source=_by_source(tasks, differences, scale, alpha),
        equivalence=within,
        verdict=verdict,
        sample=sample,
        bounds=_bounds(rows["a"], rows["b"], what, key),
        deterministic=tuple(name for name, own in ((a, rows["a"]), (b, rows["b"])) if deterministic(own)),
        left_out=left_out,
        notes=notes,
        tasks=by_task,
        table=task_scores({a: rows["a"], b: rows["b"]}, key),
        places=tuple(_places(results, by_task, alpha, scale)),
        least=sample.least,
        failures=failure_differences(rows["a"], rows["b"], tasks, key, alpha),
    )


def _paired(
    both: Results, a: Sequence[Row], b: Sequence[Row], what: Measure, key: Callable[[Row], str]
) -> tuple[dict[str, tuple[Array, Array]], dict[str, int]]:
    """Return the values of both arms by task, and the number of runs left out by reason."""
    left_out = both.left_out
    infinite = sum(row.counts and row.valid and row.score is None for row in both.rows)
    unknown = sum(row.counts and what.of(row) is None for row in both.rows if not what.technique or "@" in row.task)
    if infinite and what.name.partition("@")[0] in _OF_SCORES:
        left_out["infinite or undefined scores"] = infinite
        unknown -= infinite
    if unknown > 0:
        left_out[f"without {what.title}"] = unknown
    tainted = sum(row.verdict in ("tainted", "not reproducible") for row in both.rows)
    if tainted:
        left_out["not trusted, counted as failures"] = tainted
    of_a, of_b = (cells(rows, what, key) for rows in (a, b))
    common = sorted(set(of_a) & set(of_b))
    names, shared = (a[0].arm, b[0].arm), set(map(key, a)) & set(map(key, b))
    check_measurable(what, [row for row in both.rows if key(row) in shared])
    if not common:
        raise MlereduxError(
            f"{names[0]} and {names[1]} have no common task with a known {what.name!r}.",
            hint="Run both on the same tasks; runs that failed through no fault of the agent do not count.",
        )
    if alone := len(set(of_a) ^ set(of_b)):
        left_out["tasks of one arm only"] = alone
    return {task: (of_a[task], of_b[task]) for task in common}, left_out


def _record_of(differences: Array) -> dict[str, int]:
    wins, losses = int(np.sum(differences > TIE)), int(np.sum(differences < -TIE))
    return {"wins": wins, "ties": len(differences) - wins - losses, "losses": losses}


def _by_source(tasks: Sequence[str], differences: Array, scale: Scale, alpha: float) -> Interval | None:
    groups = grouped(zip(map(source, tasks), differences, strict=True))
    if len(groups) == len(tasks):
        return None
    return paired_interval(np.array([np.mean(values) for values in groups.values()]), scale, alpha)


def _again(a: Sequence[Array], b: Sequence[Array], alpha: float, reach: float) -> Interval | None:
    """Return the interval on these tasks, by Welch's t with Satterthwaite's degrees of freedom over all tasks and arms.

    It is clipped to the possible differences.
    """
    parts = [(np.var(v, ddof=1) / len(v), len(v) - 1) for v in (*a, *b) if len(v) > 1]
    if len(parts) < len(a) + len(b):
        return None
    total = sum(variance for variance, _ in parts)
    mean = float((means_of(b) - means_of(a)).mean())
    if not total:
        return None
    freedom = total**2 / sum(variance**2 / df for variance, df in parts)
    half = student(1 - alpha / 2, float(freedom)) * float(np.sqrt(total)) / len(a)
    return Interval(max(mean - half, -reach), min(mean + half, reach), 1 - alpha)


def _verdict(
    difference: float, p: float, evidence: Evidence, within: float | None, margin: float, sample: Sample
) -> Outcome:
    """Return the answer: whether the arms are equivalent if that is tested, else whether B is better.

    A significant difference takes precedence over weaker claims, except for a loss within the margin.
    """
    alpha, equivalence = sample.alpha, sample.equivalence
    significant = min(evidence.above(margin), evidence.below(-margin)) <= alpha / 2 if equivalence else p <= alpha
    if significant and difference > 0 and not equivalence:
        return "better"
    if within is not None and within <= alpha:
        return "equivalent"
    if margin and not equivalence and evidence.above(-margin) <= alpha / 2:
        return "not worse"
    if significant:
        return "better" if difference > 0 else "worse"
    return "cannot tell" if sample.tasks < sample.least else "undecided"


def _task_differences(
    tasks: Sequence[str], a: Sequence[Array], b: Sequence[Array], parts: Variance, sign: float, seed: int
) -> list[TaskDifference]:
    differences = means_of(b) - means_of(a)
    mean = float(differences.mean())
    p = [shuffled(x, y, seed) if len(x) > 1 and len(y) > 1 else 1.0 for x, y in zip(a, b, strict=True)]
    paired = []
    for task, x, y, d, q in zip(tasks, a, b, differences, benjamini_hochberg(p), strict=True):
        noise = parts.within_a / len(x) + parts.within_b / len(y)
        weight = parts.between / (parts.between + noise) if parts.between + noise else 1.0
        shrunken = mean + weight * (float(d) - mean)
        runs = len(x), len(y)
        paired.append(TaskDifference(task, float(sign * x.mean()), float(sign * y.mean()), float(d), shrunken, q, runs))
    return paired


def _places(results: Results, tasks: Sequence[TaskDifference], alpha: float, scale: Scale) -> list[Place]:
    """Return the differences by split, category and metric, for each of these that has several values."""
    places = []
    for kind in ("split", "category", "metric"):
        names = [str(getattr(results.fact(task.task), kind) or "unknown").strip() for task in tasks]
        groups = grouped(zip(names, (task.difference for task in tasks), strict=True))
        if len(groups) < 2 or len(groups) == len(tasks):
            continue
        for name, values in sorted(groups.items()):
            array = np.array(values)
            interval = paired_interval(array, scale, alpha)
            places.append(Place(kind, name, len(values), float(array.mean()), interval, **_record_of(array)))
    return places


def _bounds(a: Sequence[Row], b: Sequence[Row], what: Measure, key: Callable[[Row], str]) -> Interval | None:
    """Return the difference over all tasks and seeds of either arm, if missing runs were the worst or the best for
    B.
    """
    if what.bounds is None:
        return None
    both = [cells(rows, what, key) for rows in (a, b)]
    tasks = {**both[0], **both[1]}
    own, other = (bounds_of(rows, what, values, tasks) for rows, values in zip((a, b), both, strict=True))
    return Interval(other[1][0] - own[1][1], other[1][1] - own[1][0]) if own[0] or other[0] else None
