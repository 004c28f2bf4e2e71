"""One run: its directory, its state, its events, its files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mleredux._core.plugins.discovery import provided
from mleredux._core.store.events import EventLog
from mleredux._core.store.files import FileLock, damaged, read_bounded, read_record, write_atomically
from mleredux._core.store.states import TRANSITIONS, SubmissionVersion, final_state
from mleredux.errors import MlereduxError, NotFound
from mleredux.models import Cause, Event, Manifest, Outcome, Report, RunRecord, RunSpec, RunUse, State, VersionScore
from mleredux.models.base import MAX_MARKS, parse
from mleredux.models.events import Judged, Payload, StateEntered

if TYPE_CHECKING:
    from mleredux.models import Sample

SCORES_FILE = "scores.json"
"""The file of a run with the score of each version of its submission."""
INTERRUPTED = "interrupted"
"""The status of a run that has not ended and whose process is dead."""
GRADES_FILE = "grades.json"
"""The file of a run that was graded again, with all its reports and their versions, oldest first."""
_CURVE_POINTS = 24
_RECORD_FILE, _ROLLOUT_FILE = "run.json", "rollout.json"
_CANCEL_FILE = ".cancel"
_HOLD_FILE = ".hold"

Observer = Callable[["Run", Event], None]
_Content = TypeVar("_Content")


class Run:
    """A run on disk. Any process may read it; only the holder of `lock` may write.

    Attributes:
        path: The run directory.
        log: The event log, and the state that results from it (`log.state`).
        lock: The lock held by the process that executes the run.
        observers: Functions called after each event is written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        _check_files(path)
        record = self._read(_RECORD_FILE, RunRecord.model_validate)
        if record is None:
            raise NotFound(f"There is no run in {path}.", hint="See `mleredux runs`.")
        self._record = record
        if self.id != path.absolute().name:
            raise MlereduxError(
                f"{path} contains the files of run {self.id} under another name; copies are not runs.",
                hint="If you renamed the run, restore the name of its folder; otherwise, delete the copy.",
            )
        self.log = EventLog(path / "events.jsonl")
        self.lock = FileLock(path / ".lock")
        self.observers: list[Observer] = []

    @classmethod
    def create(cls, path: Path, spec: RunSpec) -> Run:
        """Create the directory of a new run in the state `queued`."""
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
        """The run's id, which is the name of its directory."""
        return self.spec.id

    @property
    def output_dir(self) -> Path:
        """The agent's output, which is untrusted."""
        return self.path / "output"

    @property
    def logs_dir(self) -> Path:
        """The folder of the logs of agent and sandbox."""
        return self.path / "logs"

    @property
    def agent_log(self) -> Path:
        """Standard output and error of the agent, as bytes."""
        return self.logs_dir / "agent.log"

    @property
    def use(self) -> RunUse:
        """The environment used so far."""
        return self._record.use

    def guard(self, check: Callable[[], None]) -> None:
        """Call `check` before each write of events and records; it raises if this process may no longer write."""
        self.log.check = check

    def record_use(self, **used: Any) -> None:
        """Update fields of `use`, the environment of the run."""
        self.log.check()
        self._record = self._record.model_copy(update={"use": self.use.model_copy(update=used)})
        _write(self.path, self._record)

    def emit(self, what: Payload | str, /, **data: Any) -> Event:
        """Append an event, given as an object or as a type with data, and notify the observers."""
        event = self.log.append(what, **data)
        for observer in self.observers:
            observer(self, event)
        return event

    def events(self, after: int = -1) -> list[Event]:
        """Return events in order, starting after a sequence number."""
        return self.log.read(after)

    def enter(self, state: State, *, cause: Cause | None = None, message: str | None = None) -> None:
        """Enter a state.

        Raises:
            MlereduxError: The state machine does not allow the transition.
        """
        if state not in TRANSITIONS[before := self.state]:
            raise MlereduxError(f"Run {self.id} can't change from {before} to {state}.")
        self.emit(StateEntered(state=state, cause=cause, message=message))

    @property
    def state(self) -> State:
        """The current state."""
        return self.log.state.state

    @property
    def cause(self) -> Cause | None:
        """Why the run failed, if it did."""
        return self.log.state.cause

    @property
    def message(self) -> str | None:
        """One sentence about why the run failed, if it did."""
        return self.log.state.message

    def give_up(self, cause: Cause, message: str) -> bool:
        """End the run, which no process executes, as cancelled or failed; return whether its lock was acquired.

        Raises:
            OSError: The event can't be written.
        """
        with self.lock.attempt() as acquired:
            if acquired and not self.state.final:
                if self.state is not State.QUEUED:
                    self.enter(State.PRODUCING)
                self.enter(final_state(cause), cause=cause, message=message)
        return acquired

    @property
    def ticket(self) -> dict[str, Any]:
        """The executor's job that may execute the run; empty if the run was not submitted to an executor."""
        return read_ticket(self.path)

    @property
    def alive(self) -> bool:
        """Whether a process is executing the run now."""
        return self.lock.held_elsewhere()

    @property
    def status(self) -> str:
        """The state; `interrupted` if the run has not ended and its process is dead.

        Runs that are queued, held, or submitted to an executor are not executed by a process on this machine.
        """
        waits = self.state is State.QUEUED or self.hold_end is not None or self.ticket.get("job")
        known = self.state.final or waits or self.alive or self.state.final  # it may have ended in the meantime
        return str(self.state) if known else INTERRUPTED

    def ask_to_cancel(self) -> None:
        """Ask the process that executes the run, now or later, to stop."""
        (self.path / _CANCEL_FILE).touch()

    def forget_cancel(self) -> None:
        """Remove a request to cancel, before the run continues."""
        (self.path / _CANCEL_FILE).unlink(missing_ok=True)

    @property
    def cancel_asked(self) -> bool:
        """Whether cancellation was requested."""
        return (self.path / _CANCEL_FILE).exists()

    def hold(self, until: datetime | None) -> None:
        """Do not grade the run before this time; None: before it is released."""
        write_atomically(self.path / _HOLD_FILE, until.isoformat() if until else "")

    def release(self) -> None:
        """Allow the run to be graded from now on."""
        (self.path / _HOLD_FILE).unlink(missing_ok=True)

    @property
    def hold_end(self) -> datetime | None:
        """When a held run may be graded; the latest possible time if it must first be released; None: immediately."""
        try:
            return datetime.fromisoformat(read_bounded(self.path / _HOLD_FILE).decode())
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return datetime.max.replace(tzinfo=UTC)

    @property
    def held(self) -> bool:
        """Whether the run must not be graded yet."""
        return (end := self.hold_end) is not None and datetime.now(UTC) < end

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the agent, once it has ended."""
        return self.log.state.outcome

    @property
    def report(self) -> Report | None:
        """The report, once the run is graded."""
        events = partial(read_bounded, self.path / "events.jsonl")
        return self._read("report.json", lambda content: Report.model_validate(content).of_run(self.id, events))

    @property
    def score(self) -> float | None:
        """The score, once the run is graded."""
        return report.score if (report := self.report) else None

    @property
    def medal(self) -> str | None:
        """`gold`, `silver`, `bronze` or None."""
        return report.medal if (report := self.report) else None

    def write_report(self, report: Report) -> None:
        """Store the report with its verdict; the medals of all versions of the submission are updated to match."""
        self.log.check()
        report = report.model_copy(update={"run": self.id})
        write_atomically(self.path / "report.json", report.model_dump_json(indent=1) + "\n")
        if scores := self.scores:
            self.write_scores([score.model_copy(update={"medal": report.medal_of(score.score)}) for score in scores])
        self.emit(Judged(status=report.verdict.status, message=report.verdict.why, run=self.id))

    def write_scores(self, scores: Sequence[VersionScore]) -> None:
        """Store the scores over time."""
        self.log.check()
        content = [score.model_dump(mode="json") for score in scores]
        write_atomically(self.path / SCORES_FILE, json.dumps(content, indent=1) + "\n")

    @property
    def rollout(self) -> Any:
        """The agent's steps as a `mleredux_rollout.Trajectory`, once there are any; else None.

        Raises:
            NotFound: The kit `mleredux-rollout` is not installed.
        """
        rollouts = partial(provided, "rollout", "mleredux.kits")
        return self._read(_ROLLOUT_FILE, lambda content: rollouts().Trajectory.model_validate(content))

    @property
    def manifest(self) -> Manifest | None:
        """The list of artifacts, once there is one."""
        return self._read("artifacts.json", Manifest.model_validate)

    @property
    def scores(self) -> list[VersionScore]:
        """The scores over time: every version of the submission, oldest first; empty until they are graded."""
        return self._read(SCORES_FILE, lambda items: [VersionScore.model_validate(item) for item in items]) or []

    @property
    def curve(self) -> list[tuple[float, float]]:
        """The score over time for lists of runs: seconds and score of at most 24 versions, including the last one."""
        points = [(round(fact.seconds, 1), fact.score) for fact in self.scores if fact.score is not None]
        return points[:: -len(points) // _CURVE_POINTS or -1][::-1]

    def results(self) -> dict[str, Any]:
        """Return the results that lists of runs show; those that are not known yet are None."""
        report, outcome = self.report, self.outcome
        llm = report.ledger.llm if report and report.ledger else None
        return {
            **{name: getattr(report, name, None) for name in ("score", "medal", "percentile")},
            "verdict": report.verdict.status if report else None,
            **{name: getattr(outcome, name, None) for name in ("seconds", "paused_seconds")},
            "tokens": llm.prompt_tokens + llm.completion_tokens if llm else None,
            "cost_usd": llm.cost_usd if llm else None,
            "message": self.message or (report.message if report else None),
            "curve": self.curve,
        }

    def resources(self) -> list[Sample]:
        """Return the resource use of the agent over time."""
        from mleredux._core.sandboxes.timeline import TIMELINE_FILE, read_timeline

        return read_timeline(self.logs_dir / TIMELINE_FILE)

    def submissions(self) -> list[SubmissionVersion]:
        """Return the versions of the submission file, oldest first."""
        return [replace(kept, path=self.path / "submissions" / kept.path.name) for kept in self.log.state.submissions]

    def record(self) -> dict[str, Any]:
        """Return the record that `mleredux run --json` prints."""
        report = self.report
        return {
            **{name: getattr(self.spec, name) for name in ("id", "task", "agent", "seed", "sandbox")},
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
        """Return a document of the run; None if it does not exist."""
        try:  # each mark may become several errors, which take more memory than values
            return form(parse(read_bounded(self.path / name), MAX_MARKS // (1 if name == _ROLLOUT_FILE else 8)))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise damaged(self.path / name, error) from error

    def _repr_html_(self) -> str:
        """Return the HTML for notebooks."""
        from mleredux._core.records import run_html

        return run_html(self)


def _check_files(path: Path) -> None:
    """Check that a run directory, which may come from another user, has no links or devices outside the agent's files.

    Raises:
        MlereduxError: It has some, so reading the run might never end, or might show another file on this machine.
    """
    for folder in (path, path / "logs", path / "submissions"):
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
            for entry in entries:
                if not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
                    raise damaged(Path(entry.path), OSError("is a link or a device, not a file of the run"))


def _write(path: Path, record: RunRecord) -> None:
    write_atomically(path / _RECORD_FILE, record.model_dump_json(indent=1) + "\n")


TICKET_FILE = ".ticket"


def read_ticket(folder: Path) -> dict[str, Any]:
    """Return the ticket of a run: `nonce`, `executor`, `job`, and how to execute it; empty if there is none."""
    return read_record(folder / TICKET_FILE)


def write_ticket(folder: Path, ticket: dict[str, Any]) -> None:
    """Store the ticket of a run; jobs with another ticket do nothing."""
    write_atomically(folder / TICKET_FILE, json.dumps(ticket))
