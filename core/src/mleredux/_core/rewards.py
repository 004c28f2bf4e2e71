"""Rewards of ended runs, for doors through which policies learn."""

from __future__ import annotations

from collections.abc import Callable

from mleredux._core.models import Report
from mleredux._core.models.events import Warned
from mleredux._core.store import Run
from mleredux.errors import MlereduxError


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


def reward_of(run: Run, rule: str, *, told_by: str | None = None) -> float | None:
    """The reward of an ended run; None for a submission that is not valid, or has no value by this rule.

    Args:
        rule: `score` (with a minus if lower is better), `percentile` (0 to 1) or `valid` (1).
        told_by: The plugin that gives a test score out by it: a warning in the run's events says so.

    Raises:
        MlereduxError: There is no such rule.
    """
    if rule not in REWARDS:
        raise MlereduxError(f"There is no reward {rule!r}.", hint=f"Use {', '.join(REWARDS)}.")
    if told_by is not None and rule != "valid":
        run.emit(Warned(plugin=told_by, message="The test score of this run was given out as a reward."))
    report = run.report
    return REWARDS[rule](report) if report is not None and report.valid_submission else None
