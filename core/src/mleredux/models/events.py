"""Events of a run: a line of `events.jsonl`, and its data as typed values, distinguished by `type`."""

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

    @property
    def data(self) -> dict[str, Any]:
        """The data as written: without the type, and without fields that are None."""
        written = self.model_dump(mode="json", exclude={"type"})
        return {name: value for name, value in written.items() if value is not None}


class StateEntered(Payload):
    """The run entered a state; with the cause if it failed."""

    type: Literal["state"] = "state"
    state: State
    cause: Cause | None = None
    message: str | None = None


class StageEnded(Payload):
    """A stage finished, failed or was cancelled. For stages without a result; the others have their own type."""

    type: Literal["stage"] = "stage"
    stage: State
    status: Literal["finished", "failed", "cancelled"] = "finished"
    seconds: float | None = None
    cause: Cause | None = None
    """Why the stage failed."""
    message: str | None = None


class PrepareEnded(StageEnded):
    """The data is prepared."""

    stage: Literal[State.PREPARING] = State.PREPARING


class BuildEnded(StageEnded):
    """The agent's environment is built."""

    stage: Literal[State.BUILDING] = State.BUILDING
    image: str | None = None
    cached: bool | None = None


class AgentEnded(StageEnded):
    """The agent has ended."""

    stage: Literal[State.RUNNING] = State.RUNNING
    outcome: Outcome | None = None
    submission: str | None = None
    """The version to grade, relative to the run."""
    problem: str | None = None
    """Why there is no submission: the end of a sentence that starts with the file's name."""

    @property
    def submitted(self) -> Submitted:
        """The submission, relative to the run, or what was found in its place."""
        if self.submission is not None:
            return Path(self.submission)
        return NotSubmitted() if self.problem in (None, NotSubmitted.problem) else Unusable(problem=self.problem)


class GradeEnded(StageEnded):
    """The submission is graded."""

    stage: Literal[State.GRADING] = State.GRADING
    score: float | None = None
    valid: bool | None = None
    versions: int | None = None
    """How many versions of the submission were graded."""


class ProduceEnded(StageEnded):
    """Artifacts are produced."""

    stage: Literal[State.PRODUCING] = State.PRODUCING


class Judged(Payload):
    """The result of the run has a verdict, or another one than before."""

    type: Literal["verdict"] = "verdict"
    status: str
    """`verified`, `not reproducible`, `not checked` or `tainted`."""
    message: str | None = None


class Attempt(Payload):
    """An agent is about to start, has ended, or was interrupted because its machine is taken away."""

    type: Literal["attempt"] = "attempt"
    status: Literal["starting", "ended", "interrupted"]
    outcome: Outcome | None = None


class AgentFound(Payload):
    """The agent was started, or found again after this program was killed."""

    type: Literal["agent"] = "agent"
    status: Literal["started", "adopted"]
    sandbox: str | None = None
    handle: str | None = None
    agent: str | None = None
    started_at: float | None = None
    """Unix time."""
    monotonic: float | None = None


class Notice(Payload):
    """The agent was informed of the remaining time."""

    type: Literal["notice"] = "notice"
    seconds_left: float


class Signal(Payload):
    """The agent was sent a signal."""

    type: Literal["signal"] = "signal"
    signal: str
    grace: float | None = None
    """Seconds before the next signal."""


class LimitReached(Payload):
    """The agent reached a limit: `time`, `memory`, `disk` or `processes`."""

    type: Literal["limit"] = "limit"
    limit: str
    value: float | None = None
    message: str | None = None


class Validation(Payload):
    """The agent asked whether its submission is well-formed."""

    type: Literal["validation"] = "validation"
    valid: bool
    message: str
    seconds: float = 0.0
    """As in `Verdict`."""


class SubmissionKept(Payload):
    """A version of the submission was copied."""

    type: Literal["submission"] = "submission"
    number: int
    path: str
    """Relative to the run."""
    size: int


class Retry(Payload):
    """A stage is tried once more."""

    type: Literal["retry"] = "retry"
    stage: State
    cause: Cause
    message: str


class DataNoted(Payload):
    """A fingerprint of the prepared data before the agent started, or the fact that the data has changed since."""

    type: Literal["data"] = "data"
    status: Literal["noted", "changed"]
    stamp: str | None = None
    message: str | None = None


class DiskOpened(Payload):
    """The disk of the run is there: what holds its limit."""

    type: Literal["disk"] = "disk"
    limit_mb: int
    enforced_by: Literal["volume", "walk"]
    """As in `DiskLimit`."""
    named: bool = False
    """Whether the run is obfuscated, and the path of its data can't be hidden from the agent."""


class GatewayUse(Payload):
    """The gateway closed, or a budget was used up."""

    type: Literal["gateway"] = "gateway"
    status: str
    use: LlmUse | None = None
    """Usage in all attempts so far."""
    budget: str | None = None
    limit: float | None = None


class NetworkUse(Payload):
    """A host was contacted first, or what was counted of it when its phase ended."""

    type: Literal["network"] = "network"
    use: HostUse


class Warned(Payload):
    """Something failed that does not end a run."""

    type: Literal["warning"] = "warning"
    message: str
    plugin: str | None = None
    path: str | None = None


class Other(Payload):
    """An event of a plugin or of a newer version; its data is stored as extra attributes."""


Stage = Annotated[
    PrepareEnded | BuildEnded | AgentEnded | GradeEnded | ProduceEnded,
    Field(discriminator="stage"),
]
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
    | SubmissionKept
    | Retry
    | DataNoted
    | DiskOpened
    | GatewayUse
    | NetworkUse
    | Warned,
    Field(discriminator="type"),
]


class Event(Model):
    """One line of `events.jsonl`."""

    seq: int
    """From 0, without gaps."""
    time: datetime
    type: str
    """`state`, `stage`, `attempt`, `agent`, `notice`, `signal`, `limit`, `validation`, `submission`, `retry`, `data`,
    `disk`, `gateway`, `network`, `verdict`, `warning`."""
    data: dict[str, Any] = {}
    """The event as written."""

    @cached_property
    def payload(self) -> Payload:
        """The data as a value of its type; `Other` if this version does not know the type."""
        try:
            payload: Payload = _known().validate_python({**self.data, "type": self.type})
        except ValueError:
            return Other.model_construct(type=self.type, **{k: v for k, v in self.data.items() if k != "type"})
        return payload


@cache
def _known() -> TypeAdapter[Payload]:
    return TypeAdapter(Known)
