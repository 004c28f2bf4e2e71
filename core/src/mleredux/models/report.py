"""The report on a graded submission: MLE-bench's fields, and additional ones."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

from mleredux.models.base import Model, Open
from mleredux.models.formats import Shown
from mleredux.models.verdict import Evidence, ResultVerdict, Verification, verdict_on

_THRESHOLDS = tuple(f"{name} {{{name}_threshold:g}}" for name in ("gold", "silver", "bronze", "median"))
_PERCENTILE = ("{percentile:.0f} %", "{teams:d} entries")
_EARNED: dict[str, Any] = {
    **dict.fromkeys(("any_medal", "gold_medal", "silver_medal", "bronze_medal", "above_median"), False),
    "percentile": None,
}
"""Fields that only a trusted result has, with their values in the report of any other result."""


class LlmUse(Model):
    """The LLM usage of a run, as counted by the gateway."""

    calls: int = 0
    """Calls that were forwarded."""
    failed: int = 0
    """The number of these calls to which the upstream returned an error."""
    refused: int = 0
    """Calls that were not forwarded because of a budget, the model, or a field that is not granted."""
    prompt_tokens: int = 0
    """Input tokens, cached ones included."""
    cached_tokens: int = 0
    """Prompt tokens that the provider read from its cache."""
    completion_tokens: int = 0
    """Tokens that the models generated."""
    cost_usd: float | None = None
    """Cost according to the gateway's price table; None if a model has no price there."""
    models: tuple[str, ...] = ()
    """Names of the models that were called."""
    hosts: tuple[str, ...] = ()
    """Upstream hosts."""
    exhausted: str | None = None
    """The budget that caused calls to be refused: `llm_calls`, `llm_tokens` or `llm_cost_usd`."""
    refused_fields: dict[str, int] = {}
    """Fields and headers removed from requests, without their contents, and how often."""
    excess_tokens: int = 0
    """Output tokens beyond the maximum that the gateway set and a provider ignored."""
    price_tables: tuple[str, ...] = ()
    """The price tables used to compute the cost: name, date, checksum."""
    replay: str | None = None
    """The run whose recorded responses were replayed instead of calling models."""
    repeated: int = 0
    """Calls that were answered from the recording."""
    outage_seconds: float = 0.0
    """Seconds of provider outages for which the run's clock was paused."""
    differences: tuple[str, ...] = ()
    """For each call without a counterpart in the recording, a sentence about the difference."""


class DiskLimit(Model):
    """The disk limit of a run, and how strictly it is enforced."""

    limit_mb: int
    """The limit in MiB."""
    enforced_by: Annotated[Literal["volume", "walk"], Open]
    """`volume`: a file system of that size, which can't be exceeded. `walk`: the supervisor measures files about once a
    second and stops the agent; deleted files that are still open are not counted."""


class HostUse(Model):
    """A host that a build or an agent reached, or tried to reach."""

    phase: str
    """`build` or `run`."""
    host: str
    """The name or address."""
    port: int
    """The TCP port."""
    allowed: bool
    """Whether the connection was allowed."""
    connections: int = 0
    """Number of connections."""
    sent: int = 0
    """Bytes sent to the host."""
    received: int = 0
    """Bytes received from the host."""

    def plus(self, other: HostUse | None) -> HostUse:
        """Return the sum of two counts of the same host."""
        if other is None:
            return self
        counts = ("connections", "sent", "received")
        return self.model_copy(update={name: getattr(self, name) + getattr(other, name) for name in counts})


class Ledger(Model):
    """The feedback that an agent received and the access that it had, which qualify its result."""

    validations: int = 0
    """Number of times the agent validated its submission."""
    validation_seconds: float = 0.0
    """CPU seconds spent on executing the submission for these validations, if it is a program; they do not count
    toward the agent's limits."""
    dev_scores: int = 0
    """Number of scores that the agent received on rows held back from the training data."""
    dev_bits: float = 0.0
    """Upper bound on the information about these rows in all these scores, in bits."""
    network: str = "none"
    """The network access that the agent had."""
    hosts: tuple[str, ...] = ()
    """Hosts reached while the agent ran, including the gateway's upstreams."""
    egress: tuple[HostUse, ...] = ()
    """Every host that the agent or its build reached or was denied, with counts. The hosts of an image that was built
    earlier are recorded in the run that built it."""
    llm_calls: int | None = None
    """LLM calls through the gateway; None if there was no gateway."""
    llm: LlmUse | None = None
    """The usage of these calls."""
    disk: DiskLimit | None = None
    """The disk limit, and how it was enforced."""
    isolated: bool = True
    """Whether the sandbox is a security boundary; the process sandbox is not."""
    answers_exposed: bool = False
    """Whether any held-out data was accessible to the agent."""
    answers_seen: bool = False
    """Whether the agent's files or logs prove that it had held-out data."""
    notes: tuple[str, ...] = ()
    """Further sentences that qualify the result."""


class VersionScore(Model):
    """One version of a run's submission, graded after the run."""

    number: int
    """The version number, counted from 1 in order of submission."""
    time: datetime
    """When the version was copied, in UTC."""
    seconds: float
    """Seconds since the agent's start."""
    size: int
    """Size in bytes."""
    score: float | None
    """The score, rounded as in the report."""
    valid: bool
    """Whether the version could be scored."""
    medal: str | None = None
    """`gold`, `silver`, `bronze` or None."""
    message: str | None = None
    """Why the version could not be scored."""


class Report(Model):
    """One graded submission. The first block has the names and meanings of MLE-bench's grading report."""

    competition_id: str
    """Id of the task."""
    score: Annotated[float | None, Shown("score", ("{score:.5f} ({metric})",), brief=True)]
    """Rounded to five decimals; None if there is no score. JSON can't represent NaN or infinities: they become null,
    while `valid_submission` stays true."""
    gold_threshold: Annotated[float | None, Shown("thresholds", _THRESHOLDS)] = None
    """The score needed for gold; None if the task has no medals."""
    silver_threshold: float | None = None
    """The score needed for silver."""
    bronze_threshold: float | None = None
    """The score needed for bronze."""
    median_threshold: float | None = None
    """The median score of the leaderboard."""
    any_medal: Annotated[bool, Shown("medal", ("{medal_name}",), when="gold_threshold", brief=True)] = False
    """Whether the score earns a medal."""
    gold_medal: bool = False
    """Whether the best medal for the score is gold."""
    silver_medal: bool = False
    """Whether the best medal for the score is silver."""
    bronze_medal: bool = False
    """Whether the best medal for the score is bronze."""
    above_median: Annotated[bool, Shown("above median", when="median_threshold", brief=True)] = False
    """Whether the score is strictly better than the median."""
    submission_exists: bool
    """Whether there was a file to grade."""
    valid_submission: Annotated[bool, Shown("valid")]
    """Whether the file could be scored."""
    is_lower_better: bool
    """Whether smaller scores are better."""
    created_at: datetime
    """When the submission was graded, in UTC."""
    submission_path: str
    """The path of the graded file."""

    run: str | None = None
    """The id of the run; None outside a run."""
    message: Annotated[str | None, Shown("message")] = None
    """One sentence about why there is no score."""
    note: Annotated[str | None, Shown("note", brief=True)] = None
    """The scores with which this one can't be compared, if the task declares any."""
    task_version: str
    """The version of the task."""
    metric: Annotated[str, Shown("metric", ("{metric}", "{better} is better"))]
    """The name of the metric."""
    percentile: Annotated[float | None, Shown("percentile", _PERCENTILE, brief=True)] = None
    """Percentage of the leaderboard's entries that the score beats or equals."""
    teams: int | None = None
    """Number of entries on the leaderboard."""
    details: dict[str, Any] = {}
    """Additional values returned by the grader, by name."""
    limit: Annotated[str | None, Shown("ended by limit")] = None
    """The limit that ended the agent: time, memory, disk, processes."""
    ledger: Ledger | None = None
    """The feedback and access that the agent had; None outside a run."""
    verdict: Annotated[ResultVerdict, Shown("verdict", ("{verdict.status}",), brief=True)] = ResultVerdict()
    """Whether the result can be trusted. If `verdict.trusted` is false, this report omits the medals, `above_median`
    and `percentile`, so that totals over reports respect the verdict; `score` remains, but should not be averaged."""

    def judged(self, evidence: tuple[Evidence, ...], verification: Verification | None) -> Report:
        """Return the report with the verdict that follows from the evidence and the verification.

        Fields withheld by an earlier verdict are restored or withheld again.
        """
        verdict = verdict_on(evidence, verification)
        earned = {name: getattr(self, name) for name in _EARNED} | self.verdict.withheld
        if not verdict.trusted:
            withheld = {name: value for name, value in earned.items() if value != _EARNED[name]}
            verdict, earned = verdict.model_copy(update={"withheld": withheld}), _EARNED
        return self.model_copy(update={**earned, "verdict": verdict})

    def of_run(self, run: str, events: Callable[[], bytes]) -> Report:
        """Return the report of a run.

        Args:
            run: The id of the run.
            events: Reads the log of its events; in a copy that has a new id, they name the same run as the report.

        Raises:
            ValueError: It is the report of another run; the message is the end of a sentence.
        """
        if self.run not in (None, run) and f'"run":"{self.run}"'.encode() not in events():
            raise ValueError(f"it is the report of run {self.run}")
        return self

    def medal_of(self, score: float | None) -> str | None:
        """Return the medal for another score of the same run, using this report's thresholds and verdict."""
        if score is None or not self.verdict.trusted:
            return None
        for name in ("gold", "silver", "bronze"):
            threshold = getattr(self, f"{name}_threshold")
            if threshold is not None and (score <= threshold if self.is_lower_better else score >= threshold):
                return name
        return None

    @property
    def medal(self) -> str | None:
        """`gold`, `silver`, `bronze` or None."""
        return next((name for name in ("gold", "silver", "bronze") if getattr(self, f"{name}_medal")), None)

    @property
    def medal_name(self) -> str:
        """The medal, or `none`."""
        return self.medal or "none"

    @property
    def better(self) -> str:
        """Which scores are better: `lower` or `higher`."""
        return "lower" if self.is_lower_better else "higher"
