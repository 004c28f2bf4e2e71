"""The state machine of a run."""

from __future__ import annotations

from mleredux._core.models import Cause, State

STAGES: tuple[State, ...] = (State.PREPARING, State.BUILDING, State.RUNNING, State.GRADING, State.PRODUCING)
"""Stages in order. A finished stage is not repeated; an interrupted one is entered again."""

_ENDS = frozenset({State.DONE, State.FAILED, State.TIMED_OUT, State.CANCELLED})

TRANSITIONS: dict[State, frozenset[State]] = {
    # Queued again after it failed or was cancelled, it goes on where it was.
    State.QUEUED: frozenset({*STAGES, State.CANCELLED, State.FAILED}),
    State.PREPARING: frozenset({State.PREPARING, State.BUILDING, State.RUNNING, State.PRODUCING}),
    State.BUILDING: frozenset({State.PREPARING, State.BUILDING, State.RUNNING, State.PRODUCING}),
    State.RUNNING: frozenset({State.PREPARING, State.BUILDING, State.RUNNING, State.GRADING, State.PRODUCING}),
    State.GRADING: frozenset({State.GRADING, State.PRODUCING}),
    # An interrupted, cancelled or failed run may be resumed: it enters the first stage that is not finished.
    State.PRODUCING: frozenset({*STAGES, *_ENDS}),
    **{state: frozenset() for state in _ENDS},
    State.CANCELLED: frozenset({*STAGES, State.QUEUED}),
    State.FAILED: frozenset({*STAGES, State.QUEUED}),
}
"""Which state may follow which. `failed` goes on only where the cause is not the agent's."""


def final_state(cause: Cause | None) -> State:
    """The state a run ends in."""
    if cause is None:
        return State.DONE
    return {Cause.AGENT_TIMED_OUT: State.TIMED_OUT, Cause.CANCELLED: State.CANCELLED}.get(cause, State.FAILED)
