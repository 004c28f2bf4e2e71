"""The record of an experiment in `experiment.json`: its frozen plan and every later change."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError, NotFound, file_errors
from mleredux.plugin.experiment import Plan
from mleredux.plugin.files import write_atomically
from pydantic import BaseModel, ConfigDict, ValidationError

from mleredux_experiments.results.table import flat

RECORD_FILE = "experiment.json"
FOLDER = "experiments"
"""The folder for all experiments in a runs folder."""


class Change(BaseModel):
    """A change of the plan or of installed versions after the plan was frozen."""

    time: datetime
    what: str
    """A sentence that describes the change."""
    results: int
    """Number of runs that had ended; a change after the first result is a deviation from the plan."""


class Record(BaseModel):
    """The content of `experiment.json`."""

    model_config = ConfigDict(extra="ignore")

    form: int = 1
    """Version of this model."""
    name: str
    runs: str = "../.."
    """The folder of its runs, relative to this one."""
    plan: Plan
    digest: str
    """SHA-256 of the current plan, including extensions."""
    file_digest: str
    """SHA-256 of the plan when it was last read from its file."""
    extra_tasks: tuple[str, ...] = ()
    extra_seeds: tuple[int, ...] = ()
    """Seeds that `extend` added to those of the plan's file."""
    pinned: dict[str, str] = {}
    """Exact references of agents, by the references in the plan."""
    versions: dict[str, str] = {}
    """Versions of distributions and tasks."""
    data_dir: str
    created_at: datetime
    changes: list[Change] = []
    stopped: str | None = None
    """Why no new runs are started, if a budget or the stopping rule ended the experiment."""

    def save(self, folder: Path) -> None:
        """Write the record atomically.

        Raises:
            MlereduxError: The folder can't be created.
        """
        message = f"The experiment's directory {folder} can't be created"
        with file_errors(MlereduxError, message, "Choose another with --runs-dir."):
            folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / RECORD_FILE, self.model_dump_json(indent=1) + "\n")

    def changed(self, what: str, results: int) -> None:
        """Add a change to the record."""
        self.changes.append(Change(time=datetime.now(UTC), what=what, results=results))

    def extended(self, plan: Plan) -> Plan:
        """Return a plan with the tasks and seeds that `extend` added."""
        design = plan.experiment
        update = {
            "tasks": tuple(dict.fromkeys((*design.tasks, *self.extra_tasks))),
            "seeds": tuple(dict.fromkeys((*design.seeds, *self.extra_seeds))),
        }
        return plan.model_copy(update={"experiment": design.model_copy(update=update)})

    @property
    def deviations(self) -> list[Change]:
        """Return the changes made after the first result."""
        return [change for change in self.changes if change.results]

    @property
    def sentences(self) -> list[str]:
        """Return each deviation as a sentence."""
        return [f"After {change.results} results: {change.what}" for change in self.deviations]


def digest_of(plan: Plan) -> str:
    """Return the SHA-256 of a plan; it depends on the order of arms, but not on the format of the file."""
    return hashlib.sha256(plan.model_dump_json().encode()).hexdigest()


def open_record(folder: Path) -> Record:
    """Read the record of an experiment.

    Raises:
        NotFound: The record does not exist.
        MlereduxError: The record is damaged.
    """
    path = folder / RECORD_FILE
    try:
        return Record.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        message = f"There is no experiment in {folder}."
        raise NotFound(message, hint="Start one: `mleredux experiment run PLAN`.") from None
    except (OSError, ValidationError) as error:
        message = f"{path} is damaged ({type(error).__name__})."
        raise MlereduxError(message, hint="Restore it, or delete the folder; runs are kept.") from error


def differences(before: Plan, after: Plan) -> list[str]:
    """Return the changed fields of a plan as `field: before → after`, and new and removed arms by name."""
    old, new = (dict(flat(plan.model_dump(mode="json", exclude={"arms"}))) for plan in (before, after))
    changes = [
        f"{key}: {_short(old.get(key))} → {_short(new.get(key))}" for key in old | new if old.get(key) != new.get(key)
    ]
    arms_before, arms_after = before.all_arms(), after.all_arms()
    changes += [f"arm {name} added" for name in arms_after.keys() - arms_before.keys()]
    changes += [f"arm {name} removed" for name in arms_before.keys() - arms_after.keys()]
    return sorted(changes)


def changed_arms(before: Plan, after: Plan) -> dict[str, str]:
    """Return arms whose runs would differ from earlier ones, each with the first field that differs.

    A context for a task that had none before belongs to a new task.
    """
    old, new = before.all_arms(), after.all_arms()
    changes = {}
    for name in old.keys() & new.keys():
        was, now = (dict(flat(arm[name].model_dump(mode="json", exclude={"grid", "context"}))) for arm in (old, new))
        by_task = bool(old[name].contexts) and "*" not in old[name].contexts
        added = {key for key in now if by_task and key.startswith("contexts.") and key not in was}
        differing = [key for key in was | now if was.get(key) != now.get(key) and key not in added]
        if differing:
            key = differing[0]
            changes[name] = f"{key}: {_short(was.get(key))} → {_short(now.get(key))}"
    return dict(sorted(changes.items()))


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
