"""The verdict on a result: whether its score can be trusted, and why."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mleredux.models.base import Model, Open

SUBMITTED_ANSWERS = "submitted-answers"
"""The kind of evidence for a submission that equals the answers."""
_LOOKED_UP = (SUBMITTED_ANSWERS, "public-labels")
"""Kinds of evidence for looked-up answers, which executing the code again does not refute."""
SCORE_GIVEN = "score-given"
"""The kind of evidence for a test score that was disclosed, for example as the reward of a learning policy."""
VerdictStatus = Literal["verified", "not reproducible", "not checked", "score given", "tainted"]


class Evidence(Model):
    """One reason to doubt a result."""

    kind: str
    """The kind of evidence: `canary`, `private-file`, `known-answers`, `noise-ceiling`, `copied`, `jump`, …"""
    level: Annotated[Literal["seen", "within reach", "suspicious"], Open]
    """`seen`: proof that the agent had the answers, which taints the result. `within reach`: nothing prevented the
    agent from reading them. `suspicious`: improbable for an honest run, for people to review."""
    why: str
    """One sentence."""


class Verification(Model):
    """The result of executing the final code of a run again, on renamed and permuted test data."""

    status: Annotated[Literal["verified", "not reproducible", "not attempted"], Open]
    """Whether the score was reproduced."""
    why: str
    """One sentence."""
    entry: str | None = None
    """What was executed: a file in `output/code`, a command, or the agent."""
    score: float | None = None
    """Score of the submission."""
    scores: tuple[float | None, ...] = ()
    """Score of each repetition that created a valid submission."""
    tolerance: float | None = None
    """Maximum difference from the score of the submission, in units of the metric."""


class ResultVerdict(Model):
    """Whether a result can be trusted. Lists, medals and aggregates use `status`, which `Report.judged` derives."""

    status: Annotated[VerdictStatus, Open] = "not checked"
    """`tainted`: the agent demonstrably had the answers, regardless of other evidence. `not reproducible`: executed
    again under the same conditions, the program did not achieve the score. `score given`: the test score was disclosed
    as a reward, so the task is no longer a test for a policy that learned from it. `verified`: the program achieved the
    score
    again, and nothing indicates that it looks up answers. `not checked`: the program was not executed again, did not
    run under the same conditions, or can't be judged."""
    why: str | None = None
    """One sentence about the reason for the status."""
    evidence: tuple[Evidence, ...] = ()
    """The reasons for doubt that were found."""
    verification: Verification | None = None
    """The result of executing the code again; None if that was not requested."""
    withheld: dict[str, Any] = {}
    """The report fields that an untrusted result loses (`gold_medal`, `above_median`, `percentile`, …), with the values
    that the score alone would give."""

    @property
    def trusted(self) -> bool:
        """Whether the result counts: it is neither tainted nor not reproducible."""
        return self.status not in ("tainted", "not reproducible")

    @property
    def ranked(self) -> bool:
        """Whether leaderboards include the result by default: it is trusted, and its test score was not disclosed."""
        return self.trusted and self.status != "score given"


def verdict_on(evidence: tuple[Evidence, ...], verification: Verification | None) -> ResultVerdict:
    """Derive the verdict: proof that answers were seen outweighs everything, then the verification decides.

    A submission that equals the answers does not taint a result if the code achieves its score again: it may simply be
    perfect. However, code that looks up answers also achieves its score again, so the result is not verified either.
    """
    failed = verification is None or verification.status == "not reproducible"
    if verification is not None and not failed and verification.score in verification.scores:
        evidence = tuple(
            item.model_copy(update={"level": "suspicious"}) if item.kind == SUBMITTED_ANSWERS else item
            for item in evidence
        )
    seen = [item for item in evidence if item.level == "seen"]
    score_given = [item for item in evidence if item.kind == SCORE_GIVEN]
    if seen:
        status: VerdictStatus = "tainted"
        why = seen[0].why
    elif score_given and (verification is None or verification.status != "not reproducible"):
        status, why = "score given", score_given[0].why
    elif verification is None:
        status, why = "not checked", "The final code was not executed again."
    else:
        status = "not checked" if verification.status == "not attempted" else verification.status
        why = verification.why
        looked_up = [item for item in evidence if item.kind in _LOOKED_UP]
        if status == "verified" and looked_up:
            status = "not checked"
            why = f"{looked_up[0].why} Executing the code again can't show whether it looks answers up."
    return ResultVerdict(status=status, why=why, evidence=evidence, verification=verification)
