"""One run: its directory, its state, its events, its files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mleredux._core.store.events import EventLog
from mleredux._core.store.files import FileLock, write_atomically
from mleredux._core.store.states import TRANSITIONS, SubmissionVersion, final_state
from mleredux.errors import MlereduxError, NotFound
from mleredux.models import (
    Cause,
    Event,
    Manifest,
    Outcome,
    Report,
    RunRecord,
    RunSpec,
    RunUse,
    State,
    VersionScore,
)
from mleredux.models.base import parse
from mleredux.models.events import Judged, Payload, StateEntered

if TYPE_CHECKING:
    from mleredux.models import Sample
    from mleredux.models.rollout import Trajectory

SCORES_FILE = "scores.json"
"""The file of a run with the scores of each version of its submission."""
INTERRUPTED = "interrupted"
"""The status of a run that has not ended and whose process is dead."""
GRADES_FILE = "grades.json"
"""The file of a run that was graded again: all its reports with their versions, oldest first."""
_CURVE_POINTS = 24
_RECORD_FILE = "run.json"
_CANCEL_FILE = ".cancel"
_HOLD_FILE = ".hold"

Observer = Callable[["Run", Event], None]
_Content = TypeVar("_Content")


class Run:
    """A run on disk. Reading is free to everybody; writing is for the holder of `lock`.

    Attributes:
        path: The run directory.
        log: What happened: events, and what they come to (`log.state`).
        lock: Held by who works on it.
        observers: Called after each event was written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        record = self._read(_RECORD_FILE, RunRecord.model_validate)
        if record is None:
            raise NotFound(f"There is no run in {path}.", hint="See `mleredux runs`.")
        self._record = record
        if self.id != path.absolute().name:
            raise MlereduxError(
                f"{path} has the files of run {self.id}, under another name: a copy is not a run.",
                hint="If you renamed the run, give its folder this name again; else delete the copy.",
            )
        self.log = EventLog(path / "events.jsonl")
        self.lock = FileLock(path / ".lock")
        self.observers: list[Observer] = []

    @classmethod
    def create(cls, path: Path, spec: RunSpec) -> Run:
        """Make the directory of a new run, in state `queued`."""
        path.mkdir(parents=True)
        for folder in ("output", "submissions", "logs"):
            (path / folder).mkdir()
        _write(path, RunRecord(spec=spec))
        run = cls(path)
        run.emit(StateEntered(state=State.QUEUED))
        return run

    @property
    def spec(self) -> RunSpec:
        """The specification of the run."""
        return self._record.spec

    @property
    def id(self) -> str:
        """The run's id, which is its directory's name."""
        return self.spec.id

    @property
    def output_dir(self) -> Path:
        """The agent's output: hostile."""
        return self.path / "output"

    @property
    def logs_dir(self) -> Path:
        """Agent and sandbox logs."""
        return self.path / "logs"

    @property
    def agent_log(self) -> Path:
        """Standard output and error of the agent, as bytes."""
        return self.logs_dir / "agent.log"

    @property
    def use(self) -> RunUse:
        """What was used so far."""
        return self._record.use

    def guard(self, check: Callable[[], None]) -> None:
        """Call `check` before each write of events and records; it raises if this process may not write any more."""
        self.log.check = check

    def record_use(self, **used: Any) -> None:
        """Add to what was used."""
        self.log.check()
        self._record = self._record.model_copy(update={"use": self.use.model_copy(update=used)})
        _write(self.path, self._record)

    def emit(self, what: Payload | str, /, **data: Any) -> Event:
        """Append an event, a typed one or one of a type and data, and tell the observers."""
        event = self.log.append(what, **data)
        for observer in self.observers:
            observer(self, event)
        return event

    def events(self, after: int = -1) -> list[Event]:
        """Return events in order, from after a sequence number."""
        return self.log.read(after)

    def enter(self, state: State, *, cause: Cause | None = None, message: str | None = None) -> None:
        """Go to a state.

        Raises:
            MlereduxError: The state machine does not allow it.
        """
        before = self.state
        if state not in TRANSITIONS[before]:
            raise MlereduxError(f"Run {self.id} can't go from {before} to {state}.")
        self.emit(StateEntered(state=state, cause=cause, message=message))

    @property
    def state(self) -> State:
        """The current state."""
        return self.log.state.state

    @property
    def cause(self) -> Cause | None:
        """Why it failed, where it did."""
        return self.log.state.cause

    @property
    def message(self) -> str | None:
        """One sentence on why it failed, where it did."""
        return self.log.state.message

    def give_up(self, cause: Cause, message: str) -> bool:
        """End it without a worker as cancelled or failed; return whether its lock was acquired.

        Raises:
            OSError: The event can't be written.
        """
        if not self.lock.acquire():
            return False
        try:
            if not self.state.final:
                if self.state is not State.QUEUED:
                    self.enter(State.PRODUCING)
                self.enter(final_state(cause), cause=cause, message=message)
        finally:
            self.lock.release()
        return True

    @property
    def ticket(self) -> dict[str, Any]:
        """Which job at an executor may execute it; empty if it was given to none."""
        return read_ticket(self.path)

    @property
    def alive(self) -> bool:
        """Whether a process is working on it now."""
        return self.lock.held_elsewhere()

    @property
    def status(self) -> str:
        """Its state; `interrupted` if it has not ended and its process is dead.

        Runs that wait in a queue, are held back, or are at an executor are not worked on by a process of this machine.
        """
        elsewhere = self.state is State.QUEUED or self.hold_end is not None or self.ticket.get("job")
        if self.state.final or elsewhere or self.alive:
            return str(self.state)
        return str(self.state) if self.state.final else INTERRUPTED  # it may have ended since

    def ask_to_cancel(self) -> None:
        """Ask whoever works on it, now or later, to stop."""
        (self.path / _CANCEL_FILE).touch()

    def forget_cancel(self) -> None:
        """Remove a request to cancel, before the run continues."""
        (self.path / _CANCEL_FILE).unlink(missing_ok=True)

    @property
    def cancel_asked(self) -> bool:
        """Whether somebody asked to stop it."""
        return (self.path / _CANCEL_FILE).exists()

    def hold(self, until: datetime | None) -> None:
        """Do not grade it before this time; None: before it is released."""
        write_atomically(self.path / _HOLD_FILE, until.isoformat() if until else "")

    def release(self) -> None:
        """Let it be graded from now on."""
        (self.path / _HOLD_FILE).unlink(missing_ok=True)

    @property
    def hold_end(self) -> datetime | None:
        """When a run that is held may be graded; the end of time for one that must be released; None: at once."""
        try:
            text = (self.path / _HOLD_FILE).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            return datetime.max.replace(tzinfo=UTC)

    @property
    def held(self) -> bool:
        """Whether it must not be graded yet."""
        end = self.hold_end
        return end is not None and datetime.now(UTC) < end

    @property
    def outcome(self) -> Outcome | None:
        """How the agent's work ended, once it has."""
        return self.log.state.outcome

    @property
    def report(self) -> Report | None:
        """The grade, once there is one."""
        return self._read("report.json", Report.model_validate)

    @property
    def score(self) -> float | None:
        """The score, once there is one."""
        return report.score if (report := self.report) else None

    @property
    def medal(self) -> str | None:
        """`gold`, `silver`, `bronze` or None."""
        return report.medal if (report := self.report) else None

    def write_report(self, report: Report) -> None:
        """Store the grade with its verdict; medals of all versions of the submission follow it."""
        self.log.check()
        write_atomically(self.path / "report.json", report.model_dump_json(indent=1) + "\n")
        if scores := self.scores:
            self.write_scores([score.model_copy(update={"medal": report.medal_of(score.score)}) for score in scores])
        self.emit(Judged(status=report.verdict.status, message=report.verdict.why))

    def write_scores(self, scores: Sequence[VersionScore]) -> None:
        """Store the score over time."""
        self.log.check()
        content = [score.model_dump(mode="json") for score in scores]
        write_atomically(self.path / SCORES_FILE, json.dumps(content, indent=1) + "\n")

    @property
    def rollout(self) -> Trajectory | None:
        """The standard trace, once there is one."""
        from mleredux.models.rollout import Trajectory

        return self._read("rollout.json", Trajectory.model_validate)

    @property
    def manifest(self) -> Manifest | None:
        """The list of artifacts, once there is one."""
        return self._read("artifacts.json", Manifest.model_validate)

    @property
    def scores(self) -> list[VersionScore]:
        """The score over time: every version of the submission, oldest first; empty until they are graded."""
        return self._read(SCORES_FILE, lambda items: [VersionScore.model_validate(item) for item in items]) or []

    @property
    def curve(self) -> list[tuple[float, float]]:
        """The score over time as lists of runs show it: seconds and score of at most 24 versions, the last included."""
        points = [(round(fact.seconds, 1), fact.score) for fact in self.scores if fact.score is not None]
        every = -(-len(points) // _CURVE_POINTS) or 1
        return points[::-every][::-1]

    def resources(self) -> list[Sample]:
        """Return the resource use of the agent over time."""
        from mleredux._core.sandboxes.timeline import FILE, read_timeline

        return read_timeline(self.logs_dir / FILE)

    def submissions(self) -> list[SubmissionVersion]:
        """Return the versions of the submission file, oldest first."""
        return [replace(kept, path=self.path / kept.path) for kept in self.log.state.submissions]

    def record(self) -> dict[str, Any]:
        """Return what `mleredux run --json` prints."""
        report = self.report
        return {
            "id": self.id,
            "task": self.spec.task,
            "agent": self.spec.agent,
            "seed": self.spec.seed,
            "sandbox": self.spec.sandbox,
            "status": self.status,
            "cause": str(self.cause) if self.cause else None,
            "message": self.message,
            "report": report.model_dump(mode="json") if report else None,
            "path": str(self.path),
            "created_at": self.spec.created_at.isoformat(),
            "experiment": self.spec.experiment,
            "arm": self.spec.arm,
        }

    def _read(self, name: str, form: Callable[[Any], _Content]) -> _Content | None:
        """A document of the run; None if there is none."""
        try:
            return form(parse((self.path / name).read_bytes()))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, TypeError) as error:
            raise MlereduxError(
                f"{self.path / name} is damaged ({type(error).__name__}).", hint="Restore it, or delete the run."
            ) from error

    def _repr_html_(self) -> str:
        """For notebooks."""
        from mleredux._core.records import run_html

        return run_html(self)


def _write(path: Path, record: RunRecord) -> None:
    write_atomically(path / _RECORD_FILE, record.model_dump_json(indent=1) + "\n")


TICKET_FILE = ".ticket"


def read_ticket(folder: Path) -> dict[str, Any]:
    """Return the ticket of a run: `nonce`, `executor`, `job`, and how to execute it; empty if there is none."""
    try:
        ticket = json.loads((folder / TICKET_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return ticket if isinstance(ticket, dict) else {}


def write_ticket(folder: Path, ticket: dict[str, Any]) -> None:
    """Store the ticket of a run; a job with another one does nothing."""
    write_atomically(folder / TICKET_FILE, json.dumps(ticket))
