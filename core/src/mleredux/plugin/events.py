"""For code that reads the events of runs, or adds its own events: event data as typed values.

`event.payload` is one of these; `run.emit` accepts them, or a plugin's own type and data::

    from mleredux import Run
    from mleredux.plugin.events import LimitReached, Warned

    def warn_of_limits(run: Run) -> None:
        for event in run.events():
            if isinstance(event.payload, LimitReached):
                run.emit(Warned(plugin="frugal", message=f"The {event.payload.limit} limit was reached."))
"""

from __future__ import annotations

from mleredux.models.events import (
    AgentEnded,
    AgentFound,
    Attempt,
    BuildEnded,
    DataNoted,
    GatewayUse,
    GradeEnded,
    LimitReached,
    Notice,
    Other,
    Payload,
    PrepareEnded,
    ProduceEnded,
    Retry,
    Signal,
    StageEnded,
    StateEntered,
    SubmissionKept,
    Validation,
    Warned,
)

__all__ = [
    "AgentEnded",
    "AgentFound",
    "Attempt",
    "BuildEnded",
    "DataNoted",
    "GatewayUse",
    "GradeEnded",
    "LimitReached",
    "Notice",
    "Other",
    "Payload",
    "PrepareEnded",
    "ProduceEnded",
    "Retry",
    "Signal",
    "StageEnded",
    "StateEntered",
    "SubmissionKept",
    "Validation",
    "Warned",
]
