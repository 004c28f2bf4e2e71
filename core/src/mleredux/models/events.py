"""Events of a run: a line of `events.jsonl`, and its data as typed values, distinguished by `type`.

`event.payload` is one of these; `run.emit` accepts them, or a plugin's own type and data::

    from mleredux import Run
    from mleredux.models.events import LimitReached, Warned

    def warn_of_limits(run: Run) -> None:
        for event in run.events():
            if isinstance(event.payload, LimitReached):
                run.emit(Warned(plugin="frugal", message=f"The {event.payload.limit} limit was reached."))
"""

from __future__ import annotations

from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from mleredux.models.base import Model
from mleredux.models.report import HostUse, LlmUse
from mleredux.models.run import Cause, NotSubmitted, Outcome, State, Submitted, Unusable


class Payload(Model):
    """An event's data. Fields of newer versions are kept."""

    model_config = ConfigDict(extra="allow")

    type: str
    """The event's name."""

    @property
    def data(self) -> dict[str, Any]:
        """The data as written: without the type, and without fields that are None."""
        written = self.model_dump(mode="json", exclude={"type"})
        return {name: value for name, value in written.items() if value is not None}


class StateEntered(Payload):
    """The run entered a state. If it failed, the cause is included."""

    type: Literal["state"] = "state"
    """The event's name."""
    state: State
    """The new state."""
    cause: Cause | None = None
    """Why the run failed, with state `failed`, `timed_out` or `cancelled`."""
    message: str | None = None
    """One sentence about the cause."""


class StageEnded(Payload):
    """A stage finished, failed or was cancelled. Stages that have a result use their own event types."""

    type: Literal["stage"] = "stage"
    """The event's name."""
    stage: State
    """The state of the run during the stage."""
    status: Literal["finished", "failed", "cancelled"] = "finished"
    """How the stage ended."""
    seconds: float | None = None
    """The duration of the stage in seconds."""
    cause: Cause | None = None
    """Why the stage failed."""
    message: str | None = None
    """One sentence about the failure, if the stage failed."""


class PrepareEnded(StageEnded):
    """The data is prepared."""

    stage: Literal[State.PREPARING] = State.PREPARING
    """The stage, always `preparing`."""


class BuildEnded(StageEnded):
    """The agent's environment is built."""

    stage: Literal[State.BUILDING] = State.BUILDING
    """The stage, always `building`."""
    image: str | None = None
    """Identity of the environment: the digest of an image, or of the installed packages."""
    cached: bool | None = None
    """Whether nothing had to be built."""


class AgentEnded(StageEnded):
    """The agent has ended."""

    stage: Literal[State.RUNNING] = State.RUNNING
    """The stage, always `running`."""
    outcome: Outcome | None = None
    """How the agent ended; None if the stage failed before it started."""
    submission: str | None = None
    """The version to grade, relative to the run."""
    problem: str | None = None
    """Why there is no submission: the end of a sentence that starts with the file's name."""

    @property
    def submitted(self) -> Submitted:
        """The submission, relative to the run, or the problem that was found in its place."""
        if self.submission is not None:
            return Path(self.submission)
        return NotSubmitted() if self.problem in (None, NotSubmitted.problem) else Unusable(problem=self.problem)


class GradeEnded(StageEnded):
    """The submission is graded."""

    stage: Literal[State.GRADING] = State.GRADING
    """The stage, always `grading`."""
    score: float | None = None
    """The score; None if the submission is not valid."""
    valid: bool | None = None
    """Whether the submission could be scored."""
    versions: int | None = None
    """How many versions of the submission were graded."""


class ProduceEnded(StageEnded):
    """Artifacts are produced."""

    stage: Literal[State.PRODUCING] = State.PRODUCING
    """The stage, always `producing`."""


class Judged(Payload):
    """The result of the run received a verdict, or its verdict changed."""

    type: Literal["verdict"] = "verdict"
    status: str
    """`verified`, `not reproducible`, `not checked`, `score given` or `tainted`."""
    message: str | None = None
    """Why, in a sentence."""
    run: str | None = None
    """The id of the run, which stays the same in copies under another id."""


class Attempt(Payload):
    """An agent is about to start, has ended, or was interrupted because its machine is being reclaimed."""

    type: Literal["attempt"] = "attempt"
    """The event's name."""
    status: Literal["starting", "ended", "interrupted"]
    """What happened to the attempt."""
    outcome: Outcome | None = None
    """How the agent ended, with status `ended`."""


class AgentFound(Payload):
    """The agent was started, or found again after this program was killed."""

    type: Literal["agent"] = "agent"
    """The event's name."""
    status: Literal["started", "adopted"]
    """`started`, or `adopted` if an earlier process started it."""
    sandbox: str | None = None
    """Id of the sandbox."""
    handle: str | None = None
    """Id of the container or process."""
    agent: str | None = None
    """Id of the agent."""
    started_at: float | None = None
    """Unix time of the start."""
    monotonic: float | None = None
    """When it was started, in seconds of the machine's monotonic clock."""
    paused_before: float = 0.0
    """Seconds for which the clocks of the run's earlier agents were paused."""


class Notice(Payload):
    """The agent was informed of the remaining time."""

    type: Literal["notice"] = "notice"
    """The event's name."""
    seconds_left: float
    """Seconds until the time limit."""


class Signal(Payload):
    """The agent was sent a signal."""

    type: Literal["signal"] = "signal"
    """The event's name."""
    signal: str
    """The name of the signal, such as `SIGTERM`."""
    grace: float | None = None
    """Seconds before the next signal."""


class LimitReached(Payload):
    """The agent reached a limit: `time`, `memory`, `disk`, `processes`, or a budget that ends the run."""

    type: Literal["limit"] = "limit"
    """The event's name."""
    limit: str
    """The name of the limit."""
    value: float | None = None
    """The time limit in seconds; None for other limits."""
    message: str | None = None
    """One sentence for the user."""


class Validation(Payload):
    """The agent checked whether its submission is well-formed."""

    type: Literal["validation"] = "validation"
    """The event's name."""
    valid: bool
    """Whether the submission was well-formed."""
    message: str
    """The sentence that the agent received."""
    seconds: float = 0.0
    """As in `Verdict`."""


class DevScored(Payload):
    """The agent received a score on rows that were held back from the training data."""

    type: Literal["dev_score"] = "dev_score"
    """The event's name."""
    score: float | None = None
    """The score, rounded as the agent received it; None if its predictions have no finite score."""


class SubmissionKept(Payload):
    """A version of the submission was copied."""

    type: Literal["submission"] = "submission"
    """The event's name."""
    number: int
    """The number of the version, counted from 1."""
    path: str
    """Relative to the run."""
    size: int
    """Size in bytes."""


class Retry(Payload):
    """A stage is retried."""

    type: Literal["retry"] = "retry"
    """The event's name."""
    stage: State
    """The stage that is retried."""
    cause: Cause
    """Why it failed."""
    message: str
    """One sentence about the failure."""


class DataNoted(Payload):
    """A fingerprint of the prepared data before the agent started, or the fact that the data has changed since."""

    type: Literal["data"] = "data"
    """The event's name."""
    status: Literal["noted", "changed"]
    """`noted` before the start of the agent, `changed` if a later check found another fingerprint."""
    stamp: str | None = None
    """The fingerprint."""
    message: str | None = None
    """One sentence about what has changed."""


class DiskOpened(Payload):
    """The disk of the run is ready; records how its limit is enforced."""

    type: Literal["disk"] = "disk"
    limit_mb: int
    """The limit in MiB."""
    enforced_by: Literal["volume", "walk"]
    """As in `DiskLimit`."""
    named: bool = False
    """Whether the run is obfuscated but the path of its data, which names the task, can't be hidden from the agent."""


class GatewayUse(Payload):
    """The gateway closed, or a budget was used up."""

    type: Literal["gateway"] = "gateway"
    """The event's name."""
    status: str
    """`closed`, or `exhausted` when a budget was used up."""
    use: LlmUse | None = None
    """Usage in all attempts so far."""
    budget: str | None = None
    """The exhausted budget: `llm_calls`, `llm_tokens` or `llm_cost_usd`."""
    limit: float | None = None
    """The size of the exhausted budget."""


class NetworkUse(Payload):
    """A host was contacted for the first time, or a phase ended and the host's traffic counts are final."""

    type: Literal["network"] = "network"
    use: HostUse
    """The host with its traffic counts."""


class Warned(Payload):
    """A failure that does not end the run."""

    type: Literal["warning"] = "warning"
    """The event's name."""
    message: str
    """One sentence about the failure."""
    plugin: str | None = None
    """The plugin that failed, if one did."""
    path: str | None = None
    """The file that could not be processed, if any."""

    @property
    def sentence(self) -> str:
        """The message, with the plugin or file it refers to."""
        return ": ".join(filter(None, (self.plugin, self.path, self.message)))


class Waiting(Payload):
    """The run waits for the end of an outage, or continues."""

    type: Literal["waiting"] = "waiting"
    """The event's name."""
    message: str | None = None
    """The outage whose end it waits for, as the end of a sentence; None if it continues."""


class Other(Payload):
    """An event of a plugin or of a newer version; its data is stored as extra attributes."""


Stage = Annotated[PrepareEnded | BuildEnded | AgentEnded | GradeEnded | ProduceEnded, Field(discriminator="stage")]
Known = Annotated[
    StateEntered
    | Stage
    | Judged
    | Attempt
    | AgentFound
    | Notice
    | Signal
    | LimitReached
    | Validation
    | DevScored
    | SubmissionKept
    | Retry
    | DataNoted
    | DiskOpened
    | GatewayUse
    | NetworkUse
    | Warned
    | Waiting,
    Field(discriminator="type"),
]


class Event(Model):
    """One line of `events.jsonl`."""

    seq: int
    """The sequence number, counted from 0 without gaps."""
    time: datetime
    """The time of the event, in UTC."""
    type: str
    """`state`, `stage`, `attempt`, `agent`, `notice`, `signal`, `limit`, `validation`, `submission`, `retry`, `data`,
    `disk`, `gateway`, `network`, `verdict`, `warning`, `waiting`."""
    data: dict[str, Any] = {}
    """The event as written."""

    @cached_property
    def payload(self) -> Payload:
        """The data as an object of its event type, or `Other` if this version does not know the type."""
        try:
            payload: Payload = _known().validate_python({**self.data, "type": self.type})
        except ValueError:
            return Other.model_construct(type=self.type, **{k: v for k, v in self.data.items() if k != "type"})
        return payload


@cache
def _known() -> TypeAdapter[Payload]:
    return TypeAdapter(Known)
