"""The listed fields of a run, read from its directory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from mleredux.models.events import StageEnded
from mleredux.plugin.artifact import CAUSES, Cause, LlmUse, Run, RunStore, State
from sqlalchemy import update
from sqlalchemy.orm import Session

from mleredux_server.database.tables import RunRow, now
from mleredux_server.operations.places import without_places

ENDED = ("done", "failed", "timed_out")
"""States of runs that ended on their own."""
PREEMPTED = "preempted"
"""Status of a run that was preempted, and is queued again."""
OPEN = (*(str(state) for state in State if not state.final), PREEMPTED)


@dataclass(frozen=True)
class Facts:
    """A run's state according to its directory.

    Attributes:
        results: The results that lists of runs show, by the names of their columns.
        log_bytes: Size of the event log before it was read: if it is larger now, there are new events.
        llm_tokens: LLM tokens used in all attempts so far.
        stages: Finished stages.
        agent_works: Whether the agent was started and its end is not recorded yet.
    """

    results: dict[str, Any]
    log_bytes: int
    state: State
    cause: str | None
    valid: bool | None
    started_at: datetime | None
    ended_at: datetime | None
    changed_at: datetime | None
    llm_tokens: int
    stages: tuple[datetime, ...]
    agent_works: bool

    def columns(self) -> dict[str, Any]:
        """Return the columns of the run's row that are derived from its directory."""
        values = {name: value for name, value in vars(self).items() if name in RunRow.__table__.columns}
        return {**values, **self.results, "status": str(self.state)}


def run_at(store: RunStore, run_id: str) -> Run:
    """Return a run by its full id, since the store would also accept a prefix of another id.

    Raises:
        NotFound: Its directory is missing.
        MlereduxError: It is damaged.
    """
    return store.watch(Run(store.path / run_id))


def log_bytes(path: Path) -> int:
    """Return the size of an event log; -1 if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return -1


def facts_of(run: Run) -> Facts:
    """Read a run.

    Raises:
        MlereduxError: Its directory is damaged.
        OSError: It can't be read.
    """
    size = log_bytes(run.log.path)
    events = run.events()
    progress = run.log.state
    llm = progress.llm or LlmUse()
    report, results = run.report, run.results()
    results["message"] = without_places(results["message"], run.path.parent, Path(run.spec.data_dir))
    return Facts(
        results=results,
        log_bytes=size,
        state=progress.state,
        cause=progress.cause,
        valid=report.valid_submission if report else None,
        started_at=progress.began,
        ended_at=progress.entered if progress.state.final else None,
        changed_at=events[-1].time if events else None,
        llm_tokens=llm.prompt_tokens + llm.completion_tokens,
        stages=tuple(
            event.time
            for event in events
            if isinstance(event.payload, StageEnded) and event.payload.status == "finished"
        ),
        agent_works=progress.attempts.started and progress.attempts.unfinished and progress.attempts.outcome is None,
    )


def write_row(session: Session, run_id: str, facts: Facts, **other: str | None) -> None:
    """Update a run's row from its directory, with explicit values for some columns."""
    values = {**facts.columns(), "updated_at": facts.changed_at or now(), **other}
    session.execute(update(RunRow).where(RunRow.id == run_id).values(**values))


def lacks_result(status: str, cause: str | None) -> bool:
    """Return whether a run ended for a reason other than its agent, so that another attempt may replace it in an
    experiment."""
    return status == State.CANCELLED or (cause is not None and not CAUSES[Cause(cause)].counts)
