"""Rewards of ended runs, for doors through which policies learn."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from mleredux._core.store import Run
from mleredux.errors import MlereduxError
from mleredux.models import Report
from mleredux.models.events import Warned


def _score(report: Report) -> float | None:
    """The score, with a minus if lower is better."""
    if report.score is None:
        return None
    return -report.score if report.is_lower_better else report.score


def _percentile(report: Report) -> float | None:
    """The share of the leaderboard that the score beats or equals, from 0 to 1."""
    return None if report.percentile is None else report.percentile / 100


def _valid(report: Report) -> float | None:
    """1 for a valid submission."""
    return 1.0


REWARDS: dict[str, Callable[[Report], float | None]] = {"score": _score, "percentile": _percentile, "valid": _valid}
"""Rewards of valid submissions by name."""


def rule_of(name: str) -> Callable[[Report], float | None] | Callable[[Run], float | None]:
    """Return the rule of a name in `REWARDS`, for reports; or the function `package.module:function`, for runs.

    Raises:
        MlereduxError: There is no such rule.
    """
    if name in REWARDS:
        return REWARDS[name]
    module, _, function = name.partition(":")
    try:
        found: Callable[[Run], float | None] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError):
        known = ", ".join(REWARDS)
        hint = f"Use {known}, or package.module:function of a function of a run that is installed."
        raise MlereduxError(f"There is no reward {name!r}.", hint=hint) from None
    return found


def reward_of(run: Run, rule: str, *, told_by: str | None = None) -> float | None:
    """Return the reward of an ended run; None for a submission that is not valid, or has no value by this rule.

    Args:
        rule: `score` (with a minus if lower is better), `percentile` (0 to 1), `valid` (1), or a function of the run by
            its name, `package.module:function`.
        told_by: The plugin that gives a test score out by it: a warning in the run's events says so.

    Raises:
        MlereduxError: There is no such rule.
    """
    found = rule_of(rule)
    if told_by is not None and rule != "valid":
        run.emit(Warned(plugin=told_by, message="The test score of this run was given out as a reward."))
    report = run.report
    if report is None or not report.valid_submission:
        return None
    return found(report) if rule in REWARDS else found(run)  # type: ignore[arg-type]
