"""The report of a graded submission: MLE-bench's fields, and additional ones."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from mleredux._core.formats import Shown
from mleredux._core.models.base import Model

_THRESHOLDS = tuple(f"{name} {{{name}_threshold:g}}" for name in ("gold", "silver", "bronze", "median"))
_PERCENTILE = ("{percentile:.0f} %", "{teams:d} entries")


class LlmUse(Model):
    """The LLM usage of a run, as counted by the gateway."""

    calls: int = 0
    """Calls that were forwarded."""
    failed: int = 0
    """Of these, calls that the upstream answered with an error."""
    refused: int = 0
    """Calls that were not forwarded: a budget was used up, or the model is not offered."""
    prompt_tokens: int = 0
    """Input tokens, cached ones included."""
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    """Cost by the gateway's price table; None if a model has no price there."""
    models: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """Upstream hosts."""
    exhausted: str | None = None
    """The budget that was used up: `llm_calls`, `llm_tokens` or `llm_cost_usd`."""


class Ledger(Model):
    """The feedback and access that an agent had, which qualify its result."""

    validations: int = 0
    """Number of times the agent validated its submission."""
    network: str = "none"
    hosts: tuple[str, ...] = ()
    """Hosts contacted, if the network policy records them."""
    llm_calls: int | None = None
    """Calls through the gateway; None if there was no gateway."""
    llm: LlmUse | None = None
    """The usage of these calls."""
    isolated: bool = True
    """Whether the sandbox is a security boundary; the process sandbox is not."""
    answers_exposed: bool = False
    """Whether any held-out data was accessible to the agent."""
    notes: tuple[str, ...] = ()


class VersionScore(Model):
    """One version of a run's submission, graded after the run."""

    number: int
    """From 1, in order of submission."""
    time: datetime
    seconds: float
    """Seconds after the agent's start."""
    size: int
    score: float | None
    """As in the report."""
    valid: bool
    medal: str | None = None
    message: str | None = None


class Report(Model):
    """One graded submission. The first block has the names and meanings of MLE-bench's grading report."""

    competition_id: str
    score: Annotated[float | None, Shown("score", ("{score:.5f} ({metric})",), brief=True)]
    """Rounded to five decimals; None if there is no score. JSON has no NaN and no infinities: these become null, and
    `valid_submission` is true."""
    gold_threshold: Annotated[float | None, Shown("thresholds", _THRESHOLDS)] = None
    silver_threshold: float | None = None
    bronze_threshold: float | None = None
    median_threshold: float | None = None
    any_medal: Annotated[bool, Shown("medal", ("{medal_name}",), when="gold_threshold", brief=True)] = False
    gold_medal: bool = False
    silver_medal: bool = False
    bronze_medal: bool = False
    above_median: Annotated[bool, Shown("above median", when="median_threshold", brief=True)] = False
    submission_exists: bool
    valid_submission: Annotated[bool, Shown("valid")]
    is_lower_better: bool
    created_at: datetime
    submission_path: str

    message: Annotated[str | None, Shown("message")] = None
    """One sentence on why there is no score."""
    note: Annotated[str | None, Shown("note")] = None
    """What the score can't be compared with, if the task declares it."""
    task_version: str
    metric: Annotated[str, Shown("metric", ("{metric}", "{better} is better"))]
    percentile: Annotated[float | None, Shown("percentile", _PERCENTILE, brief=True)] = None
    """Percentage of the leaderboard's entries that the score beats or equals."""
    teams: int | None = None
    """Number of entries on the leaderboard."""
    details: dict[str, Any] = {}
    limit: Annotated[str | None, Shown("ended by limit")] = None
    """Which limit ended the agent: time, memory, disk, processes."""
    ledger: Ledger | None = None

    @property
    def medal(self) -> str | None:
        """`gold`, `silver`, `bronze` or None."""
        for name in ("gold", "silver", "bronze"):
            if getattr(self, f"{name}_medal"):
                return name
        return None

    @property
    def medal_name(self) -> str:
        """The medal, or `none`."""
        return self.medal or "none"

    @property
    def better(self) -> str:
        """Which scores are better: `lower` or `higher`."""
        return "lower" if self.is_lower_better else "higher"
