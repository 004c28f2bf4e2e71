"""How a run ended, also while its last stage is still under way."""

from __future__ import annotations

from typing import NamedTuple

from mleredux.plugin.artifact import Cause, Event, Run, State, final_state


class Ending(NamedTuple):
    """State, cause and one sentence."""

    state: State
    cause: Cause | None
    message: str | None


def ending_of(run: Run, events: list[Event]) -> Ending:
    """The run's end. Artifacts are made in the stage before it, when the state itself is not there yet."""
    state = run.state
    if state.final:
        return Ending(state, run.cause, run.message)
    stages = [event.data for event in events if event.type == "stage"]
    failed = stages[-1] if stages and stages[-1]["status"] in ("failed", "cancelled") else None
    outcome = run.outcome
    if failed and failed.get("cause"):
        cause, message = Cause(failed["cause"]), failed.get("message")
    elif failed and failed.get("outcome"):
        cause, message = Cause.CANCELLED, failed["outcome"].get("message")
    elif outcome and outcome.cause:
        cause, message = outcome.cause, outcome.message
    elif state == State.PRODUCING:
        return Ending(State.DONE, None, None)
    else:
        return Ending(state, None, None)
    return Ending(final_state(cause), cause, message)
