"""Checks that averaged runs are comparable: the same setup within an arm, the same version of each task.

This module also determines the measure by which runs are compared if none is chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mleredux.errors import MlereduxError
from mleredux.models.formats import counted, duration
from mleredux.plugin.command import current

from mleredux_experiments.results.measures import MEASURES
from mleredux_experiments.results.table import Results, Row, flat, grouped, text_of

ABOUT_LIMITS = ("The arms ran with different limits", "Limits differ", "The limits of")
"""The beginnings of sentences about limits."""
_REDUCED = ("limits.cpus", "limits.memory_mb")
"""Limits of agents that are reduced to what the machine has."""


def check_arms(results: Results) -> None:
    """Check that runs of different settings, or of different versions of a task, are not averaged.

    Raises:
        MlereduxError: Within an arm, the agent's version, options, context, network, sandbox or limits differ; or the
            version of some task differs between runs.
    """
    for arm, every in results.arms.items():
        rows = [row for row in every if row.counts]  # cancelled runs may lack facts that are recorded at the start
        if not rows:
            continue
        first = rows[0].setup
        if all(row.setup == first for row in rows):
            continue
        setups = [dict(flat(row.setup)) for row in rows]
        for key in dict.fromkeys(key for setup in setups for key in setup):
            counter = Counter(text_of(setup.get(key)) for setup in setups)
            if len(counter) > 1:
                values = " and ".join(f"{value} ({counted(count, 'run')})" for value, count in counter.most_common(3))
                most = counter.most_common(1)[0][0]
                raise MlereduxError(
                    f"The runs of {arm} differ in {key}: {values}.",
                    hint=f"Different settings are not averaged; choose with --where {key}={most}, "
                    f"or name the arm '{arm}[{key}={most}]'.",
                )
    known = ((row.task, row.task_version) for row in results.rows if row.task_version is not None and row.counts)
    for task, used in grouped(known).items():
        if len(set(used)) > 1:
            raise MlereduxError(
                f"The runs of {task} used different versions of the task: {', '.join(sorted({*used}))}.",
                hint="Scores of different versions are not comparable; choose with --where task_version=VERSION, "
                "or grade the older runs again.",
            )


def by_settings(results: Results) -> Results:
    """Return the results with a separate arm for each of an arm's settings, such as `baseline[folds=3]`, so that none
    are mixed.

    These names select the same runs in `Results.arm`. Runs that do not count keep the name of the arm's first setting.
    """
    renamed: dict[str, str] = {}
    for arm, every in results.arms.items():
        setups = [dict(flat(row.setup)) for row in every if row.counts]
        keys = dict.fromkeys(key for setup in setups for key in setup)
        differing = [key for key in keys if len({text_of(setup.get(key)) for setup in setups}) > 1]
        short = {key: key.removeprefix("limits.") if "retries." in key else key.rpartition(".")[2] for key in differing}
        labels = {key: own if [*short.values()].count(own) == 1 else key for key, own in short.items()}
        settings = [[f"{label}={text_of(setup.get(key))}" for key, label in labels.items()] for setup in setups]
        names = [f"{arm}[{','.join(own)}]" for own in settings]
        if differing:
            counted = iter(names)
            renamed |= {row.run: next(counted) if row.counts else names[0] for row in every}
    if not renamed:
        return results
    return results.keep(replace(row, arm=renamed.get(row.run, row.arm)) for row in results.rows)


def check_limits(results: Results) -> tuple[str, ...]:
    """Return sentences about the limits that differ between arms, as declared by their agents or set by a plan.

    Raises:
        MlereduxError: A user set different limits for arms outside an experiment.
    """
    unknown = [arm for arm, rows in results.arms.items() if not rows[0].setup.get("limits")]
    if unknown:
        return (f"The limits of {' and '.join(unknown)} are not known.",)
    arms = {arm: rows[0] for arm, rows in results.arms.items()}
    differing = differing_limits(results)
    if not differing:
        return ()
    declared = {arm: _declared(row) for arm, row in arms.items()}
    origins: dict[str, list[str]] = {}
    for key, own in differing.items():
        name = key.removeprefix("limits.")
        limit = f"{name} {' and '.join(f'{limit_text(key, value)} ({arm})' for arm, value in own.items())}"
        if any(name in results.planned.get(arm, ()) for arm in own):
            origin = ", by plan"
        elif all(
            value == (most := declared[arm].get(key, value)) or (key in _REDUCED and value < most)
            for arm, value in own.items()
        ):
            origin = ", as the agents declare them" + " or the machine allows" * (key in _REDUCED)
        elif all(row.experiment is not None for row in arms.values()):
            origin = ""
        else:
            raise MlereduxError(
                f"The arms ran with different limits: {limit}.",
                hint="Run both with the same limits, such as `--time-limit 20m --cpus 2`; to compare limits on "
                "purpose, plan an experiment with such arms.",
            )
        origins.setdefault(origin, []).append(limit)
    return tuple(f"Limits differ{origin}: {', '.join(parts)}." for origin, parts in origins.items())


def limit_text(key: str, value: Any) -> str:
    """Return a limit as text, a time in suitable units."""
    return duration(value) if key.endswith("time_limit") and value is not None else text_of(value)


def differing_limits(results: Results) -> dict[str, dict[str, Any]]:
    """Return the limits that differ between arms: for each limit, such as `limits.cpus`, the value in each arm."""
    limits = {arm: dict(flat({"limits": rows[0].setup.get("limits") or {}})) for arm, rows in results.arms.items()}
    keys = dict.fromkeys(key for own in limits.values() for key in own)
    by_key = {key: {arm: own.get(key) for arm, own in limits.items()} for key in keys}
    return {key: own for key, own in by_key.items() if len(set(map(text_of, own.values()))) > 1}


def _declared(row: Row) -> dict[str, Any]:
    """Return the limits that an agent declares; if it is not installed, those of its run without time and budgets."""
    try:
        agent = current().agent(row.agent)
    except Exception:  # it may come from another machine or a third party
        own = dict(flat({"limits": row.setup.get("limits") or {}}))
        return {**own, "limits.time_limit": None, "limits.gpus": None, "limits.llm_cost_usd": None}
    return dict(flat({"limits": agent.limits.model_dump()}))


def usual_measure(arms: Sequence[Sequence[Row]], *, averaged: bool = False) -> str:
    """Return the default measure of all commands and pages: the percentile if there is a leaderboard.

    Otherwise, it is the score, or the medal if the tasks have several metrics; for technique tasks, it is the reward.

    Args:
        averaged: Whether values of different tasks must be comparable, which rules out the score.
    """
    counted_arms = [own for arm in arms if (own := [row for row in arm if row.counts])]
    rows = [row for own in counted_arms for row in own]
    if _is_known("percentile", counted_arms):
        return "percentile"
    if rows and all("@" in row.task for row in rows):
        return "reward"
    metrics, tasks = {row.metric for row in rows}, {row.task for row in rows}
    one_scale = not averaged and (len(tasks) == 1 or (len(metrics) == 1 and None not in metrics))
    submitted = all(any(row.valid for row in own) for own in counted_arms)  # a failure has no score
    return "score" if one_scale and submitted and _is_known("score", counted_arms) else "any_medal"


def _is_known(name: str, arms: Sequence[Sequence[Row]]) -> bool:
    """Return whether valid submissions have a value of the measure in every arm that has any."""
    known = [[MEASURES[name].value(row) is not None for row in own if row.valid] for own in arms]
    return any(any(own) for own in known) and all(any(own) for own in known if own)
