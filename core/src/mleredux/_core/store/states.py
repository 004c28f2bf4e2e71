"""The state machine of a run, and the state that results from its events."""

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
"""Stages in order. A finished stage is not repeated; an interrupted stage is entered again."""

FINAL: frozenset[State] = frozenset(state for state in State if state.final)
"""Final states; only a run that failed or was cancelled can be resumed."""

TRANSITIONS: dict[State, frozenset[State]] = {
    # When queued again after a failure or cancellation, it continues where it was.
    State.QUEUED: frozenset({*STAGES, State.CANCELLED, State.FAILED}),
    State.PREPARING: frozenset({State.PREPARING, State.BUILDING, State.RUNNING, State.PRODUCING}),
    State.BUILDING: frozenset({State.PREPARING, State.BUILDING, State.RUNNING, State.PRODUCING}),
    State.RUNNING: frozenset({State.PREPARING, State.BUILDING, State.RUNNING, State.GRADING, State.PRODUCING}),
    State.GRADING: frozenset({State.GRADING, State.PRODUCING}),
    # An interrupted, cancelled or failed run may be resumed: it enters the first unfinished stage.
    State.PRODUCING: frozenset({*STAGES, *FINAL}),
    **{state: frozenset() for state in FINAL},
    State.CANCELLED: frozenset({*STAGES, State.QUEUED}),
    State.FAILED: frozenset({*STAGES, State.QUEUED}),
}
"""The allowed transitions between states. A `failed` run continues only if the cause is not the agent's fault."""


def final_state(cause: Cause | None) -> State:
    """Return the state a run ends in."""
    ended = {None: State.DONE, Cause.AGENT_TIMED_OUT: State.TIMED_OUT, Cause.CANCELLED: State.CANCELLED}
    return ended.get(cause, State.FAILED)


@dataclass(frozen=True)
class SubmissionVersion:
    """One version of the submission file, as it was in the output folder at some time."""

    number: int
    """The version number, counted from 1."""
    path: Path
    """The copy in the run's folder."""
    time: datetime
    """When the version was copied, in UTC."""
    size: int
    """Size in bytes."""

    @property
    def code(self) -> Path:
        """The copy of `output/code` at that time; the path does not exist if the agent had no such folder."""
        return self.path.with_name(f"{self.number:04d}-code")


@dataclass(frozen=True)
class RunState:
    """The state of a run that results from its events.

    Attributes:
        state: The current state.
        cause: Why the run failed, if it did.
        message: One sentence about the cause.
        began: When the run first left the queue.
        entered: When the run entered its current state.
        finished: Finished stages, with their results.
        last_stage: How the most recently ended stage ended.
        attempts: The agents that were started.
        agent_started: When the agent started, in Unix time; None if no agent has started.
        submissions: Versions of the submission, oldest first, their paths relative to the run.
        validations: How often the agent validated its submission.
        dev_scores: The scores that the agent got on rows held back from the training data.
        validation_seconds: CPU seconds for which these validations executed the submission, if it is a program.
        data_stamp: The fingerprint of the prepared data before the agent started.
        data_notes: The changes to the data that were found afterwards.
        disk: The disk of the last agent.
        llm: The usage of language models.
        spent: The first exhausted budget.
        egress: The contacted hosts.
        waiting_for: The outage whose end the run waits for, if any.
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
    dev_scores: tuple[float | None, ...] = ()
    data_stamp: str | None = None
    data_notes: tuple[str, ...] = ()
    disk: happened.DiskOpened | None = None
    llm: LlmUse | None = None
    spent: str | None = None
    egress: tuple[HostUse, ...] = ()
    waiting_for: str | None = None

    @property
    def ran(self) -> happened.AgentEnded | None:
        """The result of the agent's stage, once it is finished."""
        stage = self.finished.get(State.RUNNING)
        return stage if isinstance(stage, happened.AgentEnded) else None

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the agent, once its stage has finished."""
        return self.ran.outcome if self.ran else None


def fold(so_far: RunState, event: Event) -> RunState:
    """Return the state after one more event."""
    match event.payload:
        case happened.StateEntered(state=state, cause=cause, message=message):
            began = event.time if so_far.began is None and state is not State.QUEUED else so_far.began
            so_far = replace(so_far, began=began, entered=event.time, waiting_for=None)
            return replace(so_far, state=state, cause=cause, message=message)
        case happened.StageEnded() as stage:
            attempts = so_far.attempts
            if stage.stage is State.RUNNING:  # an abandoned attempt (cancelled, or a broken sandbox) is over
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
            clock = {"monotonic": agent.monotonic, "paused_before": agent.paused_before}
            update = {"started": True, **(clock if agent.status == "started" else {})}
            started = so_far.agent_started if agent.started_at is None else agent.started_at
            return replace(so_far, attempts=so_far.attempts.model_copy(update=update), agent_started=started)
        case happened.SubmissionKept(number=number, path=path, size=size):
            version = SubmissionVersion(number, Path(path), event.time, size)
            return replace(so_far, submissions=(*so_far.submissions, version))
        case happened.Validation(seconds=seconds):
            spent = so_far.validation_seconds + seconds
            return replace(so_far, validations=so_far.validations + 1, validation_seconds=spent)
        case happened.DevScored(score=score):
            return replace(so_far, dev_scores=(*so_far.dev_scores, score))
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
            known = {(seen.phase, seen.host, seen.port, seen.allowed): seen for seen in so_far.egress}
            key = (use.phase, use.host, use.port, use.allowed)
            return replace(so_far, egress=tuple({**known, key: use.plus(known.get(key))}.values()))
        case happened.Waiting(message=message):
            return replace(so_far, waiting_for=message)
    return so_far
