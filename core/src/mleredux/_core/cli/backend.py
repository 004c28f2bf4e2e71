"""The backend of commands: this machine, or the server given by `--server`. Commands depend only on this interface."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from mleredux._core.cli.run_progress import Progress
    from mleredux.models import Event, Report, Verdict
    from mleredux.models.experiment import Plan
    from mleredux.models.request import Request

Record = dict[str, Any]
"""A record as `--json` prints it."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """Runs to create, and how a backend executes them."""

    runs: Request
    """The tasks, arms and seeds."""
    base_image: str | None = None
    """This field and those up to `jobs` apply to this machine only."""
    source: Path | None = None
    """A folder or zip file with the raw data of the task, if it is not prepared yet."""
    watch: bool = False
    """Whether to run again when the agents change; the run itself then replaces the smoke run."""
    executor: str | None = None
    """The executor of the runs; None: this process."""
    store: str | None = None
    """URL of the object store through which the executor's nodes get runs; None: they share the file system."""
    last_failed: bool = False
    """Whether to create only the runs whose most recent earlier run failed."""
    replay: str | None = None
    """The run whose recorded LLM responses are replayed."""
    jobs: int = 1
    """Maximum number of runs that execute at the same time."""
    plan: Plan | None = None
    """The plan of the experiment that the runs belong to. This field and all that follow apply to a server only."""
    project: str | None = None
    """The project of the runs; None: the default project of the token."""
    priority: int | None = None
    """Runs with a higher number start first; None: 0."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the runs, by name."""
    name: str | None = None
    """The name of the batch, if the user chose one."""
    secrets: tuple[str, ...] = ()
    """Names of stored secrets that the runs get as environment variables."""
    preemptible: bool = False
    """Whether the scheduler may interrupt the runs for others."""


@dataclass
class Batch:
    """Runs that were requested together.

    Attributes:
        runs: The backend's own objects.
        records: The current records, as `--json` prints them.
        experiment: The server's id for the batch, if it has one.
        note: A sentence that states what was requested, and from which backend.
        later: How to wait for the runs, and how to stop them.
        exit_first: Whether to cancel the other runs as soon as one has failed.
    """

    runs: list[Any]
    records: list[Record] = field(default_factory=list)
    experiment: str | None = None
    note: str = ""
    later: str = ""
    exit_first: bool = False


class RunPage(NamedTuple):
    """A page of runs, newest first.

    Attributes:
        rows: Records as `--json` prints them.
        more: The number of runs not listed, in words (`17 more`); None if all are listed.
    """

    rows: list[Record]
    more: str | None


@dataclass(frozen=True)
class RunView:
    """The details of a run that are displayed, independent of the backend that stores it.

    Attributes:
        message: Why the run failed, if it did.
        waiting_for: Why the run is still queued, or does not continue during an outage.
        seconds: Time from the start of its execution to the latest event, without the time in the queue.
        artifacts: Where the artifacts are, or how to get them.
        record: The record as `--json` prints it.
        page: Where the HTML report is, if there is one.
        warnings: Failures that did not end the run, such as those of plugins that create artifacts.
    """

    task: str
    """Id of the task."""
    agent: str
    """Id of the agent, or its pinned reference."""
    status: str
    """The state of the run, with the cause if it failed."""
    report: Report | None
    """The grading report, if the submission was graded."""
    message: str | None
    seconds: float
    artifacts: str
    record: Record
    page: str | None = None
    waiting_for: str | None = None
    warnings: tuple[str, ...] = ()


class Backend(Protocol):
    """Executes commands. Runs are identified by id; `find` resolves part of an id, or `last`.

    Every method raises `NotFound` if an object does not exist, and another `MlereduxError` if an operation fails.
    """

    @property
    def place(self) -> str:
        """Where runs are stored, as part of a sentence: `in runs`, `on https://mleredux.example`."""

    def listed(self, kind: str, *, sets: tuple[str, ...], category: str | None, technique: str | None) -> list[Record]:
        """Return all objects of a type (`tasks`, `agents`, …) by id; the filters apply to tasks."""

    def task(self, name: str, *, obfuscated: bool) -> Record:
        """Return the properties of a task and its description."""

    def agent(self, name: str) -> Record:
        """Return the properties of an agent."""

    def grade(self, submission: Path, task: str, *, project: str | None) -> Report:
        """Grade a file, valid or invalid."""

    def grade_jsonl(self, listed: Path, *, output_dir: Path | None, project: str | None) -> tuple[Record, Path | None]:
        """Grade each line of MLE-bench's `submission.jsonl`: the aggregated report, and the path it was written to."""

    def validate(self, submission: Path, task: str) -> Verdict:
        """Check whether a file is well-formed."""

    def create(self, request: RunRequest) -> Batch:
        """Create runs in state queued; all are validated before the first is created."""

    def finish(self, batch: Batch, progress: Progress, *, cancel_on_interrupt: bool = False) -> list[RunView] | None:
        """Execute runs, or wait for them, until all have ended; None if the user stopped waiting."""

    def runs(self, filters: Mapping[str, Any], limit: int) -> RunPage:
        """Return runs whose fields (`task`, `agent`, `status` …) match; a tuple matches any of its values."""

    def find(self, name: str) -> str:
        """Return the id of a run."""

    def view(self, run_id: str) -> RunView:
        """Return the current state of a run."""

    def events(self, run_id: str) -> Iterable[Event]:
        """Yield the events of a run."""

    def log(self, run_id: str, *, build: bool, follow: bool) -> Iterator[bytes]:
        """Yield the log of the agent or of its build, in chunks; with `follow`, until the run has ended."""

    def artifacts(self, run_id: str) -> tuple[list[Record], list[Record]]:
        """Return the artifacts of a run, and the files that were skipped and why."""

    def download(self, run_id: str, artifacts: list[Record], folder: Path) -> None:
        """Copy artifacts into a folder."""

    def location(self, run_id: str) -> str:
        """Return the path or URL of a run."""

    def cancel(self, runs: tuple[str, ...], experiment: str | None) -> Iterator[str]:
        """Cancel runs, or all runs of an experiment; yield a sentence about each."""

    def experiment(self, name: str, action: str | None = None, body: Mapping[str, Any] | None = None) -> Record:
        """Return a server's experiment, also after an action (`extend`, `retry`), or its `analysis` or `table`."""

    def check(self, request: RunRequest) -> Record:
        """Check the request for an experiment against its plan, as `mleredux experiment check --json` prints it."""

    def delete(self, run_id: str) -> None:
        """Delete a run with all its files."""

    def explain(self, error: Exception) -> Exception | None:
        """Convert a backend's error into one of mleredux's; return None for any other error."""
