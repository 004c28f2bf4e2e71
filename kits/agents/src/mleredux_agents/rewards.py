"""Rewards of ended runs, for bridges through which policies are trained."""

from __future__ import annotations

import contextlib
import importlib
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

from mleredux._core.plugins import current
from mleredux._core.store import Run
from mleredux.errors import MlereduxError
from mleredux.models import Evidence, Report
from mleredux.models.verdict import SCORE_GIVEN

LEAST = 0.1
"""The minimum reward of a valid submission under the rule `standing`."""
_ROUNDING = 1e-9
_NOTHING = -sys.float_info.max


def _score(report: Report) -> float | None:
    """Return the score, negated if lower is better; None if it is not a finite number."""
    if report.score is None or not math.isfinite(report.score):
        return None
    return -report.score if report.is_lower_better else report.score


def _standing(report: Report) -> float | None:
    """Return the distance from the leaderboard's median in units of the distance to gold, squashed to the range 0.1 to
    1.

    Without a leaderboard, the distance is measured from 0. The best possible score of the metric has the reward 1. A
    score that is not a number has the minimum reward, and an untrusted result has none.
    """
    if not report.verdict.trusted:
        return None
    score = _score(report)
    if score is None:
        return LEAST
    if score >= _best(report) - _ROUNDING:
        return 1.0
    median, gold = _references(report)
    ahead = score - (-median if report.is_lower_better else median)
    unit = abs(gold - median) or abs(median) or 1.0
    return LEAST + (1 - LEAST) * (0.5 + math.atan2(ahead, unit) / math.pi)  # their quotient may overflow


def _best(report: Report) -> float:
    """Return the best possible score of the metric, negated if lower is better; infinity if there is none."""
    best = None
    with contextlib.suppress(MlereduxError):
        grader = current().task(report.competition_id).metric.grader
        best = (current().get("graders", grader) if isinstance(grader, str) else grader).perfect
    return math.inf if best is None else -best if report.is_lower_better else best


def _references(report: Report) -> tuple[float, float]:
    """Return the median and the gold threshold of the leaderboard; a variant uses the original competition's."""
    if report.median_threshold is not None and report.gold_threshold is not None:
        return report.median_threshold, report.gold_threshold
    with contextlib.suppress(MlereduxError):
        task = current().task(report.competition_id)
        base = task.base if task.kind == "competition" else None
        if base is not None and base.thresholds is not None and base.metric == task.metric:
            return base.thresholds.median, base.thresholds.gold
    return 0.0, 0.0


REWARDS: dict[str, Callable[[Report], float | None]] = {
    "standing": _standing,
    "percentile": lambda report: None if report.percentile is None else report.percentile / 100,
    "score": _score,
    "valid": lambda _report: 1.0,
}
"""Rewards of valid submissions by name; the first is the default of all bridges. `percentile` is the share of the
leaderboard that the score beats or equals, from 0 to 1, and `valid` is 1."""


@dataclass(frozen=True)
class RewardRule:
    """A rule for the reward of runs.

    Attributes:
        name: A name in `REWARDS`, or the name of a function.
        invalid: The reward of a run without a valid submission, or without a value by the rule.
        function: A function that takes an ended run; None if the rule is in `REWARDS`.
    """

    name: str
    invalid: float
    function: Callable[[Run], float | None] | None = None

    def of_report(self, report: Report | None) -> float:
        """Return the reward of a graded submission by a rule in `REWARDS`."""
        value = REWARDS[self.name](report) if report is not None and report.valid_submission else None
        return self.invalid if value is None else float(value)

    def of(self, run: Run, *, shown_by: str | None = None) -> float:
        """Return the reward of an ended run.

        Args:
            run: The run.
            shown_by: The plugin that shows the reward to a learner. The run's verdict then becomes `score given`,
                unless the reward depends only on whether the submission is valid.

        Raises:
            MlereduxError: The function returned a value that is not a finite number.
        """
        report = run.report
        if self.function is None:
            value = self.of_report(report)
        else:
            own = self.function(run) if report is not None and report.valid_submission else None
            value = self.invalid if own is None else _finite(own)
        if shown_by is not None and self.name != "valid" and report is not None:
            why = f"The test score was revealed as a reward by {shown_by}."
            evidence = Evidence(kind=SCORE_GIVEN, level="within reach", why=why)
            if evidence not in report.verdict.evidence:
                run.write_report(report.judged((*report.verdict.evidence, evidence), report.verdict.verification))
        return value


def rule_of(reward: str | Callable[[Run], float | None], invalid: float | None = None) -> RewardRule:
    """Return the reward rule given by a user.

    Args:
        reward: A name in `REWARDS`, or a function that takes a run with a valid submission, given as an object or as
            `package.module:function`.
        invalid: The reward of other runs; None: 0, which by default is less than the reward of any valid submission.

    Raises:
        MlereduxError: The rule does not exist, the rule is `score` (which has no lower bound) but `invalid` is missing,
            or `invalid` is not a number.
    """
    worst = _finite(invalid or 0.0)
    if not isinstance(reward, str):
        return RewardRule(getattr(reward, "__name__", "function"), worst, reward)
    if reward == "score" and invalid is None:
        raise MlereduxError(
            "The reward `score` has no bound, so no value is worse than every valid submission.",
            hint=f"Use {next(iter(REWARDS))}, or also pass `invalid`, a value worse than any score of the task.",
        )
    if reward in REWARDS:
        return RewardRule(reward, worst)
    module, _, function = reward.partition(":")
    try:
        compute = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError):
        hint = "or specify an installed function that takes a run, as package.module:function."
        raise MlereduxError(f"There is no reward {reward!r}.", hint=f"Use {', '.join(REWARDS)}, {hint}") from None
    return RewardRule(reward, worst, compute)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise MlereduxError(f"{value} can't be a reward.", hint="Use a finite number.")
    return float(value)


def reward_of(run: Run, rule: str, *, told_by: str | None = None) -> float | None:
    """Return the reward of an ended run by the name of a rule; None if the rule would give `invalid`.

    Args:
        run: The run.
        rule: The name of the rule.
        told_by: The plugin that shows the reward, as `shown_by` of `RewardRule.of`.

    Raises:
        MlereduxError: The rule does not exist.
    """
    value = rule_of(rule, _NOTHING).of(run, shown_by=told_by)
    return None if value == _NOTHING else value
