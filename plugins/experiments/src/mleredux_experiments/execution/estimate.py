"""Estimates of a plan's time, cost and smallest detectable difference, from past runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from mleredux.models.formats import counted, plain, text
from mleredux.plugin.experiment import Cell, Plan, RunPlan

from mleredux_experiments.execution.sequence import samples
from mleredux_experiments.inference.power import Variance, variance_of
from mleredux_experiments.results.measures import cells as cells_of
from mleredux_experiments.results.measures import measure
from mleredux_experiments.results.table import Results, Row

PLANNING = Variance(between=0.06e4, within_a=0.08e4, within_b=0.08e4)
"""Variances of a difference in points (percent of tasks), assumed if there are no past runs: ω² = .06, σ² = .08."""
_LEVEL = (10.0, 90.0)
_DRAWS = 1000
Planned = Sequence[tuple[Cell, RunPlan]]


@dataclass(frozen=True)
class Amount:
    """A sum over the runs of a plan: its expected value and its 80 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """The estimated requirements of a plan.

    Attributes:
        runs: Number of runs.
        past: Number of past runs of the same agents on which the estimate is based.
        hours: Total time of all runs; None without past runs.
        cost_usd: Total cost of their LLM calls; None without past runs, or if none made calls.
        most_hours: Sum of the time limits.
        detectable: The smallest difference between two arms that is detected with a power of 80 %, or the smallest
            margin within which equal arms are shown to be equivalent, or not inferior; None if it is unknown or does
            not exist. With the sequential rule, it is that of the look that detects the smallest difference.
        unit: Unit of the difference.
        basis: The source of the variance, or the reason why there is no detectable difference, as text.
        goal: The effect that the design detects, in words that precede the amount.
        power: Probability that equal arms are shown to be equivalent, or not inferior, within the plan's margin; None
            without one.
        detects: The effect that the plan detects, in words.
    """

    runs: int
    past: int
    hours: Amount | None
    cost_usd: Amount | None
    most_hours: float
    detectable: float | None
    unit: str
    basis: str
    goal: str = ""
    power: float | None = None
    detects: str = ""


@dataclass(frozen=True)
class Check:
    """A plan's matrix, and its estimate."""

    plan: Plan
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    estimate: Estimate

    def document(self) -> dict[str, Any]:
        """Return the document that `experiment check --json` prints."""
        return {
            **self.plan.experiment.model_dump(exclude={"tasks", "seeds"}),
            "arms": [{"arm": name, **_arm(arm.request("{task}"))} for name, arm in self.plan.all_arms().items()],
            "tasks": list(self.tasks),
            "seeds": list(self.seeds),
            **asdict(self.estimate),
            "stop": self.plan.stop.model_dump(),
        }


def checked(plan: Plan, planned: Planned, past: Results) -> Check:
    """Return the matrix of a plan, with an estimate from past runs."""
    tasks, seeds = dict.fromkeys(cell.task for cell, _ in planned), dict.fromkeys(cell.seed for cell, _ in planned)
    return Check(plan, tuple(tasks), tuple(seeds), estimate(plan, planned, past))


def _arm(request: dict[str, Any]) -> dict[str, Any]:
    return {
        **{key: value for key, value in request.items() if key not in ("task", "context")},
        "grants": request["grants"].model_dump(exclude_defaults=True),
        "variant": request["task"].partition("+")[2] or ("obfuscated" if request["obfuscated"] else None),
        "options": ",".join(f"{key}={value}" for key, value in request["options"].items()) or None,
        "limits": ",".join(f"{key}={text(value)}" for key, value in request["limits"].items()) or None,
    }


def estimate(plan: Plan, planned: Planned, past: Results) -> Estimate:
    """Estimate time, cost and the detectable difference of a plan.

    A run is expected to take as long, and to cost as much, as runs of the same agent on the same task or, without
    these, as all runs of the agent. The interval is from a bootstrap over past runs and over draws of new runs.
    """
    took = _past(past.rows, {run.agent for _, run in planned})
    known = [took.get((run.agent, run.task)) or took.get((run.agent, "")) for _, run in planned]
    limits = np.array([run.limits.time_limit for _, run in planned]) / 3600
    size = sum(len(runs) for (_, task), runs in took.items() if not task)
    hours = cost = None
    if planned and all(known):
        drawn = _draws([runs for runs in known if runs])
        hours = _amount(np.minimum(drawn[:, :, 0], limits).sum(axis=1))
        costs = drawn[:, :, 1].sum(axis=1)
        cost = _amount(costs) if costs.any() else None
    variance, basis = _variance(plan, past.rows)
    tasks, seeds = len({cell.task for cell, _ in planned}), len({cell.seed for cell, _ in planned})
    what, margin, smallest, power = measure(plan.experiment.primary), plan.experiment.margin, None, None
    looks = samples(plan, variance or PLANNING, tasks, seeds)
    goal, least = looks[0].goal, min(look.least for look in looks)
    if tasks < least:
        basis = f"cannot tell with so few tasks: a decision needs {least} tasks or more"
    elif variance:
        smallest = min((detectable for detectable in (look.detectable for look in looks) if detectable), default=None)
        power = max(look.chance(margin) for look in looks) if margin else None
        basis = basis if smallest else f"{looks[0].nothing} that is possible, with a power of 80 %"
    words = basis
    if smallest is not None:
        least_power = "80 %" if len(looks) == 1 else "80 % or more"
        words = f"{goal}{plain(smallest, 3)} {what.points} of {what.name} with a power of {least_power} ({basis})"
    if power is not None:
        words += f"; within the margin of {plain(margin)} with a power of {power:.0%}{' or more' * (len(looks) > 1)}"
    if smallest is not None and (certainty := looks[-1].certainty(what.points)):
        words += f". {certainty}"
    total = float(limits.sum())
    return Estimate(len(planned), size, hours, cost, total, smallest, what.points, basis, goal, power, words)


def _past(rows: Sequence[Row], agents: set[str]) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Return hours and cost of past runs that have ended, by agent and task, and by agent (with an empty task)."""
    costs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in rows:
        if row.agent in agents and row.status in ("done", "failed", "timed_out") and row.hours is not None:
            for task in (row.task, ""):
                costs.setdefault((row.agent, task), []).append((row.hours, row.cost_usd or 0.0))
    return costs


def _draws(known: Sequence[list[tuple[float, float]]]) -> np.ndarray[Any, Any]:
    """Draw runs, of shape (draws, cells, 2): each draw resamples the past runs, then draws a run for each cell from
    them."""
    generator = np.random.default_rng(0)
    pools: dict[int, np.ndarray[Any, Any]] = {}
    for runs in known:
        if id(runs) not in pools:
            pools[id(runs)] = np.array(runs)[generator.integers(0, len(runs), (_DRAWS, len(runs)))]
    draws = np.empty((_DRAWS, len(known), 2))
    for number, runs in enumerate(known):
        draws[:, number] = pools[id(runs)][np.arange(_DRAWS), generator.integers(0, len(runs), _DRAWS)]
    return draws


def _amount(totals: np.ndarray[Any, Any]) -> Amount:
    low, high = np.percentile(totals, _LEVEL)
    return Amount(float(totals.mean()), float(low), float(high))


def _variance(plan: Plan, rows: Sequence[Row]) -> tuple[Variance | None, str]:
    """Estimate the variance of a difference between arms, from past runs of this experiment or of two of its agents."""
    what, arms = measure(plan.experiment.primary), plan.all_arms()
    for key, names in (("arm", list(arms)), ("agent", list(dict.fromkeys(arm.agent for arm in arms.values())))):
        mine = [row for row in rows if key == "agent" or row.experiment == plan.experiment.name]
        scores: Mapping[str, Any] = {
            name: cells_of([row for row in mine if getattr(row, key) == name], what) for name in names
        }
        having = [name for name in names if len(scores[name]) > 1]
        if len(having) > 1:
            first, second = scores[having[0]], scores[having[1]]
            common = sorted(set(first) & set(second))
            if len(common) > 2:
                variance = variance_of([first[task] for task in common], [second[task] for task in common])
                return variance, f"past runs of {having[0]} and {having[1]} on {counted(len(common), 'task')}"
    if what.unit == "%":
        return PLANNING, "assumed variances, as there are not enough past runs of these arms"
    return None, "unknown, as there are no past runs of these arms"
