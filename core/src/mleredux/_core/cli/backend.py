"""Where commands work: on this machine, or on the server that `--server` names. Commands know no more than this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from mleredux._core.cli.run_progress import Progress
    from mleredux._core.models import Event, Report, Verdict

Record = dict[str, Any]
"""What `--json` prints."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What `mleredux run` asks for: a run for each task, agent and seed."""

    tasks: tuple[str, ...]
    sets: tuple[str, ...]
    agents: tuple[str, ...]
    seeds: tuple[int, ...]
    sandbox: str | None
    network: str | None
    limits: Mapping[str, Any]
    options: Mapping[str, Any]
    obfuscated: bool
    context: str | None
    base_image: str | None
    """This and the next two: on this machine only."""
    jobs: int
    resume: str | None
    project: str | None
    """This and all further: on a server only."""
    priority: int | None
    labels: Mapping[str, str]
    name: str | None


@dataclass
class Batch:
    """Runs that were asked for together.

    Attributes:
        runs: As the back end keeps them.
        records: As `--json` prints them, of now.
        experiment: The server's name for them together, where it has one.
        note: Who was asked for what.
        later: How to wait for them, and how to stop them.
    """

    runs: list[Any]
    records: list[Record] = field(default_factory=list)
    experiment: str | None = None
    note: str = ""
    later: str = ""


class RunPage(NamedTuple):
    """Some runs, newest first.

    Attributes:
        rows: As `--json` prints them.
        more: How many there are besides, in words (`17 more`); None where these are all.
    """

    rows: list[Record]
    more: str | None


@dataclass(frozen=True)
class RunView:
    """What people see of a run, wherever it is kept.

    Attributes:
        message: Why it failed, where it did.
        waiting_for: Why it is still queued.
        seconds: From when it was asked for to the last that happened.
        artifacts: Where they are, or how to get at them.
        record: As `--json` prints it.
        page: Where its report for people is, where there is one.
    """

    task: str
    agent: str
    status: str
    report: Report | None
    message: str | None
    seconds: float
    artifacts: str
    record: Record
    page: str | None = None
    waiting_for: str | None = None


class Backend(Protocol):
    """What works the commands. Runs are named by id; `find` makes one of a part of it, or of `last`.

    Every method raises `NotFound` for what is not there and another `MlereduxError` for what can't be done.
    """

    @property
    def place(self) -> str:
        """Where runs are, for a sentence: `in runs`, `on https://mleredux.example`."""

    def listed(self, kind: str, *, sets: tuple[str, ...], category: str | None, technique: str | None) -> list[Record]:
        """Everything of a kind (`tasks`, `agents`, …) by id; the filters are for tasks."""

    def task(self, name: str, *, obfuscated: bool) -> Record:
        """A task's facts and its description."""

    def agent(self, name: str) -> Record:
        """An agent's facts."""

    def grade(self, submission: Path, task: str, *, project: str | None) -> Report:
        """Grade a file, good or bad."""

    def grade_jsonl(self, listed: Path, *, output_dir: Path | None, project: str | None) -> tuple[Record, Path | None]:
        """Grade each line of MLE-bench's `submission.jsonl`: the aggregated report, and where it was written."""

    def validate(self, submission: Path, task: str) -> Verdict:
        """Whether a file is well-formed."""

    def create(self, request: RunRequest) -> Batch:
        """Make runs, all checked before the first is made; they are queued."""

    def finish(self, batch: Batch, progress: Progress, *, cancel_on_interrupt: bool = False) -> list[RunView] | None:
        """Work on runs, or wait for them, until all have ended; None where the user stopped waiting."""

    def runs(self, filters: Mapping[str, Any], limit: int) -> RunPage:
        """Runs with these fields (`task`, `agent`, `status` …); a tuple means any of them."""

    def find(self, name: str) -> str:
        """A run's id."""

    def view(self, run_id: str) -> RunView:
        """A run as it is now."""

    def events(self, run_id: str) -> Iterable[Event]:
        """What has happened in a run."""

    def log(self, run_id: str, *, build: bool, follow: bool) -> Iterator[bytes]:
        """The log of the agent or of its build, in pieces; with `follow`, until the run has ended."""

    def artifacts(self, run_id: str) -> tuple[list[Record], list[Record]]:
        """The artifacts of a run, and what was left out and why."""

    def download(self, run_id: str, artifacts: list[Record], folder: Path) -> None:
        """Copy artifacts into a folder."""

    def location(self, run_id: str) -> str:
        """Where a run is: its path or URL."""

    def cancel(self, runs: tuple[str, ...], experiment: str | None) -> Iterator[str]:
        """Ask runs, or all of an experiment, to stop; a sentence on each."""

    def delete(self, run_id: str) -> None:
        """Delete a run with all its files."""

    def explain(self, error: Exception) -> Exception | None:
        """An error of its own as one of mleredux's; None for any other."""
