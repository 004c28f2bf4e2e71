"""One run: its directory, its state, its events, its files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux._core.models import Cause, Event, Manifest, Outcome, Report, RunSpec, RunUse, State, VersionScore
from mleredux._core.store.events import EventLog
from mleredux._core.store.files import FileLock, write_atomically
from mleredux._core.store.states import TRANSITIONS
from mleredux.errors import MlereduxError, NotFound

if TYPE_CHECKING:
    from mleredux._core.rollout import Trajectory
    from mleredux._core.sandboxes.timeline import Sample

SCORES_FILE = "scores.json"
"""The file of a run with the scores of each version of its submission."""
_CANCEL_FILE = ".cancel"

Observer = Callable[["Run", Event], None]


@dataclass(frozen=True)
class SubmissionVersion:
    """One version of the submission file, as it lay in the output folder at a time."""

    number: int
    path: Path
    time: datetime
    size: int

    @property
    def code(self) -> Path:
        """A copy of the code that lay in `output/code` then; absent where there was none."""
        return self.path.with_name(f"{self.number:04d}-code")


class Run:
    """A run on disk. Reading is free to everybody; writing is for the holder of `lock`.

    Attributes:
        path: The run directory.
        spec: What was asked.
        observers: Called after each event was written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            asked = json.loads((path / "run.json").read_bytes())
            self.spec = RunSpec.model_validate(asked["spec"])
            self._use = RunUse.model_validate(asked["use"])
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound(f"There is no run in {path}.", hint="See `mleredux runs`.") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise MlereduxError(
                f"{path / 'run.json'} is damaged ({type(error).__name__}).", hint="Restore it, or delete the run."
            ) from error
        self.log = EventLog(path / "events.jsonl")
        self.lock = FileLock(path / ".lock")
        self.observers: list[Observer] = []

    @classmethod
    def create(cls, path: Path, spec: RunSpec) -> Run:
        """Make the directory of a new run, in state `queued`."""
        path.mkdir(parents=True)
        for folder in ("output", "submissions", "logs"):
            (path / folder).mkdir()
        write_atomically(path / "run.json", _asked(spec, RunUse()))
        run = cls(path)
        run.emit("state", state=State.QUEUED)
        return run

    @property
    def id(self) -> str:
        """The run's id, which is its directory's name."""
        return self.spec.id

    @property
    def output_dir(self) -> Path:
        """What the agent left: hostile."""
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
        return self._use

    def record_use(self, **used: Any) -> None:
        """Add to what was used."""
        self._use = self._use.model_copy(update=used)
        write_atomically(self.path / "run.json", _asked(self.spec, self._use))

    def emit(self, type_: str, **data: Any) -> Event:
        """Append an event and tell the observers."""
        event = self.log.append(type_, **data)
        for observer in self.observers:
            observer(self, event)
        return event

    def events(self, after: int = -1) -> list[Event]:
        """Events in order, from after a sequence number."""
        return list(self.log.read(after))

    def enter(self, state: State, **data: Any) -> None:
        """Go to a state.

        Raises:
            MlereduxError: The state machine does not allow it.
        """
        before = self.state
        if state not in TRANSITIONS[before]:
            raise MlereduxError(f"Run {self.id} can't go from {before} to {state}.")
        self.emit("state", state=state, **data)

    @property
    def state(self) -> State:
        """The current state."""
        last = self._last_state()
        return State(last.data["state"]) if last else State.QUEUED

    @property
    def cause(self) -> Cause | None:
        """Why it failed, where it did."""
        last = self._last_state()
        value = last.data.get("cause") if last else None
        return Cause(value) if value else None

    @property
    def message(self) -> str | None:
        """One sentence on why it failed, where it did."""
        last = self._last_state()
        return last.data.get("message") if last else None

    @property
    def alive(self) -> bool:
        """Whether a process is working on it now."""
        return self.lock.held_elsewhere()

    def ask_to_cancel(self) -> None:
        """Ask whoever works on it, now or later, to stop."""
        (self.path / _CANCEL_FILE).touch()

    def forget_cancel(self) -> None:
        """Before it goes on after it was cancelled."""
        (self.path / _CANCEL_FILE).unlink(missing_ok=True)

    @property
    def cancel_asked(self) -> bool:
        """Whether somebody asked to stop it."""
        return (self.path / _CANCEL_FILE).exists()

    def finished_stages(self) -> dict[State, dict[str, Any]]:
        """Finished stages and what their events say."""
        return {
            State(event.data["stage"]): event.data
            for event in self.log.read()
            if event.type == "stage" and event.data["status"] == "finished"
        }

    @property
    def outcome(self) -> Outcome | None:
        """How the agent's work ended, once it has."""
        stage = self.finished_stages().get(State.RUNNING)
        return Outcome.model_validate(stage["outcome"]) if stage else None

    @property
    def report(self) -> Report | None:
        """The grade, once there is one."""
        path = self.path / "report.json"
        return Report.model_validate_json(path.read_bytes()) if path.exists() else None

    @property
    def rollout(self) -> Trajectory | None:
        """The standard trace, once there is one."""
        from mleredux._core.rollout import Trajectory

        path = self.path / "rollout.json"
        return Trajectory.model_validate_json(path.read_bytes()) if path.exists() else None

    @property
    def manifest(self) -> Manifest | None:
        """The list of artifacts, once there is one."""
        path = self.path / "artifacts.json"
        return Manifest.model_validate_json(path.read_bytes()) if path.exists() else None

    @property
    def scores(self) -> list[VersionScore]:
        """The score over time: every version of the submission, oldest first; empty until they are graded."""
        path = self.path / SCORES_FILE
        if not path.exists():
            return []
        return [VersionScore.model_validate(item) for item in json.loads(path.read_bytes())]

    def resources(self) -> list[Sample]:
        """What the agent used over its time."""
        from mleredux._core.sandboxes.timeline import FILE, read_timeline

        return read_timeline(self.logs_dir / FILE)

    def submissions(self) -> list[SubmissionVersion]:
        """Versions of the submission file, oldest first."""
        return [
            SubmissionVersion(event.data["number"], self.path / event.data["path"], event.time, event.data["size"])
            for event in self.log.read()
            if event.type == "submission" and "path" in event.data
        ]

    def record(self) -> dict[str, Any]:
        """What `mleredux run --json` prints of it."""
        report = self.report
        return {
            "id": self.id,
            "task": self.spec.task,
            "agent": self.spec.agent,
            "seed": self.spec.seed,
            "sandbox": self.spec.sandbox,
            "status": str(self.state),
            "cause": str(self.cause) if self.cause else None,
            "message": self.message,
            "report": report.model_dump(mode="json") if report else None,
            "path": str(self.path),
            "created_at": self.spec.created_at.isoformat(),
        }

    def _last_state(self) -> Event | None:
        """The last change of state; None where a kill came before the first was written."""
        states = [event for event in self.log.read() if event.type == "state"]
        return states[-1] if states else None


def _asked(spec: RunSpec, use: RunUse) -> str:
    return json.dumps({"spec": spec.model_dump(mode="json"), "use": use.model_dump(mode="json")}, indent=1) + "\n"
