"""The verdict on a result: how far its score can be trusted, and why."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mleredux.models.base import Model, Open

SUBMITTED_ANSWERS = "submitted-answers"
"""The kind of evidence for a submission that equals the answers."""
_LOOKED_UP = (SUBMITTED_ANSWERS, "public-labels")
"""Kinds of evidence that answers were looked up, which executing the code again does not refute."""
SCORE_GIVEN = "score-given"
"""The kind of evidence for a test score that was given out, say as a reward to a policy that learns."""
VerdictStatus = Literal["verified", "not reproducible", "not checked", "score given", "tainted"]


class Evidence(Model):
    """One reason to doubt a result."""

    kind: str
    """What was found: `canary`, `private-file`, `known-answers`, `noise-ceiling`, `copied`, `jump`, …"""
    level: Annotated[Literal["seen", "within reach", "suspicious"], Open]
    """`seen`: proof that the agent had the answers, which taints the result. `within reach`: nothing kept the agent
    from them. `suspicious`: improbable for an honest run; for people to review."""
    why: str
    """One sentence."""


class Verification(Model):
    """The result of executing the final code of a run again, on renamed and permuted test data."""

    status: Annotated[Literal["verified", "not reproducible", "not attempted"], Open]
    """Whether the score was reproduced."""
    why: str
    """One sentence."""
    entry: str | None = None
    """What was executed: a file of `output/code`, a command, or the agent."""
    score: float | None = None
    """Score of the submission."""
    scores: tuple[float | None, ...] = ()
    """Score of each repetition that created a valid submission."""
    tolerance: float | None = None
    """Maximum difference from the score of the submission, in units of the metric."""


class ResultVerdict(Model):
    """How far a result can be trusted. Lists, medals and aggregates go by `status`, which `Report.judged` derives."""

    status: Annotated[VerdictStatus, Open] = "not checked"
    """`tainted`: the agent demonstrably had the answers, whatever else was found. `not reproducible`: executed again as
    before, the program did not achieve the score. `score given`: its test score was given out as a reward, so that
    whoever learned from it is no longer tested by this task. `verified`: the program achieved the score again, and
    nothing says that it looks answers up.
    `not checked`: it was not executed again, did not run as before, or can't be judged."""
    why: str | None = None
    """One sentence on the reason for the status."""
    evidence: tuple[Evidence, ...] = ()
    """The reasons for doubt that were found."""
    verification: Verification | None = None
    """The result of executing the code again; None if that was not requested."""
    withheld: dict[str, Any] = {}
    """The report's fields that an untrusted result loses (`gold_medal`, `above_median`, `percentile`, …), as they would
    be by the score alone."""

    @property
    def trusted(self) -> bool:
        """Whether the result counts: it is neither tainted nor not reproducible."""
        return self.status not in ("tainted", "not reproducible")

    @property
    def ranked(self) -> bool:
        """Whether leaderboards have the result by default: it is trusted, and its test score was not given out."""
        return self.trusted and self.status != "score given"


def verdict_on(evidence: tuple[Evidence, ...], verification: Verification | None) -> ResultVerdict:
    """Derive the verdict: proof that answers were seen outweighs everything, then the verification decides.

    A submission that equals the answers does not taint a result if the code achieves its score again: it may just be
    perfect. But code that looks answers up achieves it again, too, so the result is not verified either.
    """
    failed = verification is None or verification.status == "not reproducible"
    if verification is not None and not failed and verification.score in verification.scores:
        evidence = tuple(
            item.model_copy(update={"level": "suspicious"}) if item.kind == SUBMITTED_ANSWERS else item
            for item in evidence
        )
    seen = [item for item in evidence if item.level == "seen"]
    given = [item for item in evidence if item.kind == SCORE_GIVEN]
    if seen:
        status: VerdictStatus = "tainted"
        why = seen[0].why
    elif given and (verification is None or verification.status != "not reproducible"):
        status, why = "score given", given[0].why
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
