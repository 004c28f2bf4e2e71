"""The report of a graded submission."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from mleredux_client.formats import Shown, facts
from mleredux_client.markup import escaped, pairs
from mleredux_client.models.base import Model

_THRESHOLDS = tuple(f"{name} {{{name}_threshold:g}}" for name in ("gold", "silver", "bronze", "median"))
_PERCENTILE = ("{percentile:.0f} %", "{teams:d} entries")


class LlmUse(Model):
    """What a run used of language models, as the gateway counted it."""

    calls: int = 0
    """Calls that were forwarded."""
    failed: int = 0
    """Of these, calls that the upstream answered with an error."""
    refused: int = 0
    """Calls that were not forwarded."""
    prompt_tokens: int = 0
    """Tokens read, cached ones included."""
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    models: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    exhausted: str | None = None
    """The budget for which calls were refused."""
    refused_fields: dict[str, int] = {}
    """Fields and headers of requests that were not forwarded, and how often."""
    excess_tokens: int = 0
    """Tokens of answers beyond the maximum that the gateway set."""
    price_tables: tuple[str, ...] = ()
    """The tables by which cost was computed."""
    replay: str | None = None
    """The run whose recorded answers were given, in place of models."""
    repeated: int = 0
    """Calls that were answered from there."""
    differences: tuple[str, ...] = ()
    """A sentence for each call that has no counterpart there."""


class DiskLimit(Model):
    """The disk limit of a run, and how firmly it is held."""

    limit_mb: int
    enforced_by: str
    """`volume`: a file system of that size. `walk`: files were counted about once a second."""


class HostUse(Model):
    """A host that an agent or its build reached, or was refused."""

    phase: str
    """`build` or `run`."""
    host: str
    port: int
    allowed: bool
    connections: int = 0
    sent: int = 0
    """Bytes to the host."""
    received: int = 0
    """Bytes from the host."""


class Ledger(Model):
    """The signals an agent had: what a result is worth."""

    validations: int = 0
    validation_seconds: float = 0.0
    network: str = "none"
    hosts: tuple[str, ...] = ()
    egress: tuple[HostUse, ...] = ()
    llm_calls: int | None = None
    llm: LlmUse | None = None
    disk: DiskLimit | None = None
    isolated: bool = True
    """Whether the sandbox is a security boundary."""
    answers_exposed: bool = False
    """Whether anything held out lay within the agent's reach."""
    answers_seen: bool = False
    """Whether something the agent left or printed proves that it had held-out data."""
    notes: tuple[str, ...] = ()


class Evidence(Model):
    """One reason to doubt a result."""

    kind: str
    level: str
    """`seen` (proof), `within reach` or `suspicious`."""
    why: str


class Verification(Model):
    """The result of executing the final code of a run again, on renamed and permuted test data."""

    status: str
    """`verified`, `not reproducible` or `not attempted`."""
    why: str
    entry: str | None = None
    score: float | None = None
    scores: tuple[float | None, ...] = ()
    tolerance: float | None = None


class ResultVerdict(Model):
    """How far a result can be trusted."""

    status: str = "not checked"
    """`verified`, `not reproducible`, `not checked` or `tainted`."""
    why: str | None = None
    evidence: tuple[Evidence, ...] = ()
    verification: Verification | None = None
    withheld: dict[str, Any] = {}
    """What the report of an untrusted result would show by the score alone."""

    @property
    def trusted(self) -> bool:
        """Whether the result counts: it is neither tainted nor not reproducible."""
        return self.status not in ("tainted", "not reproducible")


class VersionScore(Model):
    """One version of a run's submission, graded after the run."""

    number: int
    time: datetime
    seconds: float
    """After the agent's start."""
    size: int
    score: float | None
    valid: bool
    medal: str | None = None
    message: str | None = None


class Report(Model):
    """One graded submission, with the names and meanings of MLE-bench's grading report first."""

    competition_id: str
    score: Annotated[float | None, Shown("score", ("{score:.5f} ({metric})",), brief=True)]
    """None where there is none."""
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
    """What the score can't be compared with."""
    task_version: str
    metric: Annotated[str, Shown("metric", ("{metric}", "{better} is better"))]
    percentile: Annotated[float | None, Shown("percentile", _PERCENTILE, brief=True)] = None
    """Share of the leaderboard's entries, in percent, that the score beats or equals."""
    teams: int | None = None
    details: dict[str, Any] = {}
    limit: Annotated[str | None, Shown("ended by limit")] = None
    """Which limit ended the agent: time, memory, disk, processes."""
    ledger: Ledger | None = None
    verdict: Annotated[ResultVerdict, Shown("verdict", ("{verdict.status}",), brief=True)] = ResultVerdict()
    """How far the result can be trusted; if it can't, medals, `above_median` and `percentile` are withheld."""

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

    def _repr_html_(self) -> str:
        return f"<div><b>Report on {escaped(self.competition_id)}</b>{pairs(dict(facts(self)))}</div>"


class Verdict(Model):
    """Whether a submission is well-formed; never its score."""

    valid: bool
    message: str
