"""The state machine of a run, and what its events come to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from mleredux.models import Attempts, Cause, HostUse, LlmUse, Outcome, State
from mleredux.models import events as happened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mleredux.models import Event

STAGES: tuple[State, ...] = (State.PREPARING, State.BUILDING, State.RUNNING, State.GRADING, State.PRODUCING)
"""Stages in order. A finished stage is not repeated; an interrupted one is entered again."""

FINAL: frozenset[State] = frozenset(state for state in State if state.final)
"""Final states; only a run that failed or was cancelled can be resumed."""

TRANSITIONS: dict[State, frozenset[State]] = {
    # Queued again after it failed or was cancelled, it goes on where it was.
    State.QUEUED: frozenset({*STAGES, State.CANCELLED, State.FAILED}),
    State.PREPARING: frozenset({State.PREPARING, State.BUILDING, State.RUNNING, State.PRODUCING}),
    State.BUILDING: frozenset({State.PREPARING, State.BUILDING, State.RUNNING, State.PRODUCING}),
    State.RUNNING: frozenset({State.PREPARING, State.BUILDING, State.RUNNING, State.GRADING, State.PRODUCING}),
    State.GRADING: frozenset({State.GRADING, State.PRODUCING}),
    # An interrupted, cancelled or failed run may be resumed: it enters the first stage that is not finished.
    State.PRODUCING: frozenset({*STAGES, *FINAL}),
    **{state: frozenset() for state in FINAL},
    State.CANCELLED: frozenset({*STAGES, State.QUEUED}),
    State.FAILED: frozenset({*STAGES, State.QUEUED}),
}
"""Which state may follow which. `failed` goes on only where the cause is not the agent's."""


def final_state(cause: Cause | None) -> State:
    """Return the state a run ends in."""
    if cause is None:
        return State.DONE
    return {Cause.AGENT_TIMED_OUT: State.TIMED_OUT, Cause.CANCELLED: State.CANCELLED}.get(cause, State.FAILED)


@dataclass(frozen=True)
class SubmissionVersion:
    """One version of the submission file, as it was in the output folder at a time."""

    number: int
    """Counted from 1."""
    path: Path
    """The copy in the run's folder."""
    time: datetime
    """When it was copied, in UTC."""
    size: int
    """Size in bytes."""

    @property
    def code(self) -> Path:
        """A copy of the code that lay in `output/code` then; absent where there was none."""
        return self.path.with_name(f"{self.number:04d}-code")


@dataclass(frozen=True)
class RunState:
    """What a run's events come to.

    Attributes:
        state: The current state.
        cause: Why it failed, where it did.
        message: One sentence on that.
        began: When it left the queue first.
        entered: When it came to its state.
        finished: Stages that finished, with their results.
        last_stage: How the last stage that ended did.
        attempts: The agents that were started.
        agent_started: When the agent began, in Unix time; None where none did.
        submissions: Versions of the submission, oldest first, their paths relative to the run.
        validations: How often the agent asked whether its submission is well-formed.
        validation_seconds: How long these executed it, if it is a program.
        data_stamp: What the prepared data looked like before the agent started.
        data_notes: What was found of them afterwards.
        disk: The disk that its last agent had.
        llm: What was used of language models.
        spent: The budget for which a call was refused first.
        egress: The hosts that were contacted.
    """

    state: State = State.QUEUED
    cause: Cause | None = None
    message: str | None = None
    began: datetime | None = None
    entered: datetime | None = None
    finished: Mapping[State, happened.StageEnded] = field(default_factory=lambda: MappingProxyType({}))
    last_stage: happened.StageEnded | None = None
    attempts: Attempts = field(default_factory=Attempts)
    agent_started: float | None = None
    submissions: tuple[SubmissionVersion, ...] = ()
    validations: int = 0
    validation_seconds: float = 0.0
    data_stamp: str | None = None
    data_notes: tuple[str, ...] = ()
    disk: happened.DiskOpened | None = None
    llm: LlmUse | None = None
    spent: str | None = None
    egress: tuple[HostUse, ...] = ()

    @property
    def ran(self) -> happened.AgentEnded | None:
        """The result of the agent's stage, once it is finished."""
        stage = self.finished.get(State.RUNNING)
        return stage if isinstance(stage, happened.AgentEnded) else None

    @property
    def outcome(self) -> Outcome | None:
        """How the agent's work ended, once its stage is finished."""
        return self.ran.outcome if self.ran else None


def fold(so_far: RunState, event: Event) -> RunState:
    """The state after one more event."""
    match event.payload:
        case happened.StateEntered(state=state, cause=cause, message=message):
            began = event.time if so_far.began is None and state is not State.QUEUED else so_far.began
            return replace(so_far, state=state, cause=cause, message=message, began=began, entered=event.time)
        case happened.StageEnded() as stage:
            attempts = so_far.attempts
            if stage.stage is State.RUNNING:  # an attempt that was given up (cancelled, or a broken sandbox) is over
                attempts = attempts.model_copy(update={"unfinished": False, "outcome": None})
            finished = so_far.finished
            if stage.status == "finished":
                finished = MappingProxyType({**finished, stage.stage: stage})
            return replace(so_far, finished=finished, last_stage=stage, attempts=attempts)
        case happened.Attempt(status=status, outcome=outcome):
            going_on = status != "interrupted"
            attempts = so_far.attempts.model_copy(update={"unfinished": going_on, "outcome": outcome})
            return replace(so_far, attempts=attempts)
        case happened.AgentFound() as agent:
            update = {"started": True, **({"monotonic": agent.monotonic} if agent.status == "started" else {})}
            started = so_far.agent_started if agent.started_at is None else agent.started_at
            return replace(so_far, attempts=so_far.attempts.model_copy(update=update), agent_started=started)
        case happened.SubmissionKept(number=number, path=path, size=size):
            version = SubmissionVersion(number, Path(path), event.time, size)
            return replace(so_far, submissions=(*so_far.submissions, version))
        case happened.Validation(seconds=seconds):
            spent = so_far.validation_seconds + seconds
            return replace(so_far, validations=so_far.validations + 1, validation_seconds=spent)
        case happened.DataNoted(stamp=stamp, message=message):
            notes = (*so_far.data_notes, message) if message else so_far.data_notes
            return replace(so_far, data_stamp=stamp or so_far.data_stamp, data_notes=notes)
        case happened.DiskOpened() as disk:
            return replace(so_far, disk=disk)
        case happened.GatewayUse(use=LlmUse() as use):
            return replace(so_far, llm=use)
        case happened.GatewayUse(budget=str() as budget):
            return replace(so_far, spent=budget)
        case happened.NetworkUse(use=use):
            known = {(one.phase, one.host, one.port, one.allowed): one for one in so_far.egress}
            key = (use.phase, use.host, use.port, use.allowed)
            return replace(so_far, egress=tuple({**known, key: use.plus(known.get(key))}.values()))
    return so_far
