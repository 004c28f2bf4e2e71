"""Ranking of many arms: Bradley–Terry, a hierarchical model, interquartile means, performance profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mleredux_experiments.inference.errors import Array, Cells, improvement
from mleredux_experiments.inference.power import least_tasks

_BOOTSTRAPS = 200
_MOST_RUNS = 2_000
"""Maximum number of runs for the hierarchical model, whose matrices grow with the square."""


@dataclass(frozen=True)
class Rank:
    """The rank of an arm among others, on the tasks that all of them have.

    Attributes:
        strength: Bradley–Terry strength, scaled to a geometric mean of 1 over arms: A beats B with probability s_A/(s_A
            + s_B).
        rank: Rank by strength, from 1.
        low, high: 95 % interval of the bootstrap's ranks for tasks like these; all ranks if there are too few tasks to
            distinguish arms.
        best: Probability of being ranked first; None with too few tasks.
        iqm: Interquartile mean over all runs (Agarwal et al. 2021, arXiv:2108.13264).
        ability: Posterior mean in the hierarchical model, in logits; None for measures that are not shares.
    """

    arm: str
    strength: float
    rank: int
    low: int
    high: int
    best: float | None
    iqm: float
    ability: float | None = None


def ranking(table: Mapping[str, Mapping[str, Array]], share: bool, seed: int = 0) -> list[Rank]:
    """Rank arms on the tasks that all have in common, the strongest first.

    Args:
        table: Values of the runs by arm and task; higher is better.
        share: Whether all values are 0 or 100, so that the hierarchical model applies.

    Returns:
        The ranks; empty if there are fewer than two arms, or no common task.
    """
    arms = list(table)
    tasks = sorted(set.intersection(*(set(table[arm]) for arm in arms))) if arms else []
    if len(arms) < 2 or not tasks:
        return []
    duels = np.array([_duels([table[arm][task] for arm in arms]) for task in tasks])
    generator = np.random.default_rng(seed)
    strengths = _strengths(duels.sum(axis=0))
    few = len(tasks) < least_tasks(0.05)  # then no bootstrap is reported
    drawn = generator.integers(0, len(tasks), size=(1 if few else _BOOTSTRAPS, len(tasks)))
    ranks = np.array([_ranks(_strengths(duels[chosen].sum(axis=0))) for chosen in drawn])
    first = (ranks == ranks.min(axis=1, keepdims=True)).astype(float)
    best = (first / first.sum(axis=1, keepdims=True)).mean(axis=0)
    low, high = np.quantile(ranks, [0.025, 0.975], axis=0, method="nearest")
    abilities = hierarchical({arm: {task: table[arm][task] for task in tasks} for arm in arms}) if share else {}
    ranked = []
    for number, arm in enumerate(arms):
        cells = [table[arm][task] for task in tasks]
        ranked.append(
            Rank(
                arm=arm,
                strength=float(strengths[number]),
                rank=int(_ranks(strengths)[number]),
                low=1 if few else int(low[number]),
                high=len(arms) if few else int(high[number]),
                best=None if few else float(best[number]),
                iqm=interquartile_mean(cells),
                ability=abilities.get(arm),
            )
        )
    return sorted(ranked, key=lambda rank: rank.rank)


def _duels(values: Sequence[Array]) -> Array:
    """Return W[i, j], the share of pairs of runs in which arm i is better than arm j, counting ties half; tasks have
    equal weight."""
    wins = np.zeros((len(values), len(values)))
    for i, own in enumerate(values):
        for j, other in enumerate(values[:i]):
            wins[i, j] = improvement(other, own)
            wins[j, i] = 1 - wins[i, j]
    return wins


def _strengths(wins: Array) -> Array:
    """Fit Bradley–Terry with evalica to weighted wins; half a win each way keeps the strength of an undefeated arm
    finite."""
    import evalica

    winners, losers = np.nonzero(~np.eye(len(wins), dtype=bool))
    weights = (wins[winners, losers] + 0.5 / len(wins)).tolist()
    first_wins = [evalica.Winner.X] * len(weights)
    result = evalica.bradley_terry(winners.tolist(), losers.tolist(), first_wins, weights=weights)
    scores = result.scores.sort_index().to_numpy(dtype=float)
    return np.asarray(scores / np.exp(np.mean(np.log(scores))))


def _ranks(strengths: Array) -> Array:
    """Return ranks from 1; equal strengths share the smallest rank."""
    return np.array([1 + np.sum(strengths > strength * (1 + 1e-4)) for strength in strengths])


def interquartile_mean(cells: Cells) -> float:
    """Return the mean of the middle half of all runs."""
    from scipy.stats import trim_mean

    return float(trim_mean(np.concatenate(list(cells)), 0.25))


def profile(cells: Cells, thresholds: Array) -> Array:
    """Return the performance profile: the share of runs, in percent, above each threshold; tasks have equal weight."""
    above = [100 * (values[:, None] > thresholds[None, :]).mean(axis=0) for values in cells]
    return np.asarray(np.mean(above, axis=0))


def hierarchical(table: Mapping[str, Mapping[str, Array]]) -> dict[str, float]:
    """Estimate arms' abilities in logits with tasks as random effects: logit s = β_arm + α_task + u_arm,task.

    The fit is Bayesian, by variational approximation (`BinomialBayesMixedGLM` of statsmodels).

    Returns:
        Posterior mean by arm; empty if all runs have the same outcome, or there are over 2,000.
    """
    if sum(len(values) for own in table.values() for values in own.values()) > _MOST_RUNS:
        return {}
    from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM

    arms = list(table)
    tasks = sorted(next(iter(table.values())))
    rows = [
        (a, t, value > 0) for a, arm in enumerate(arms) for t, task in enumerate(tasks) for value in table[arm][task]
    ]
    outcome = np.array([row[2] for row in rows], dtype=float)
    if not 0 < outcome.mean() < 1:
        return {}
    arm, task = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    fixed = np.eye(len(arms))[arm]
    effects: list[Any] = [np.eye(len(tasks))[task]]
    if len(rows) > len(arms) * len(tasks):  # with single runs, an arm-task effect cannot be distinguished from noise
        effects.append(np.eye(len(arms) * len(tasks))[arm * len(tasks) + task])
    kind = np.concatenate([np.full(effect.shape[1], number) for number, effect in enumerate(effects)])
    model = BinomialBayesMixedGLM(outcome, fixed, np.hstack(effects), kind, vcp_p=1.0, fe_p=2.0)
    fitted = model.fit_vb()
    return {name: float(fitted.fe_mean[a]) for a, name in enumerate(arms)}
