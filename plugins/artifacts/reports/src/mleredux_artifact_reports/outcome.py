"""The outcome of a run, even while its last stage is still active."""

from __future__ import annotations

from typing import NamedTuple

from mleredux.models.events import AgentEnded
from mleredux.plugin.artifact import Cause, Run, State, final_state


class Ending(NamedTuple):
    """The final state, its cause and a one-sentence message."""

    state: State
    cause: Cause | None
    message: str | None


def ending_of(run: Run) -> Ending:
    """Return the run's ending. Artifacts are created in the stage before it, when the final state is not yet set."""
    state = run.state
    if state.final:
        return Ending(state, run.cause, run.message)
    last, outcome = run.log.state.last_stage, run.outcome
    if last and last.status == "failed" and last.cause:
        cause, message = last.cause, last.message
    elif isinstance(last, AgentEnded) and last.status == "cancelled" and last.outcome:
        cause, message = Cause.CANCELLED, last.outcome.message
    elif outcome and outcome.cause:
        cause, message = outcome.cause, outcome.message
    elif state == State.PRODUCING:
        return Ending(State.DONE, None, None)
    else:
        return Ending(state, None, None)
    return Ending(final_state(cause), cause, message)
