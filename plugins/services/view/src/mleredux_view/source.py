"""What pages read: runs, wherever they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from mleredux.plugin.artifact import Run
from mleredux.plugin.command import Record
from mleredux.plugin.page import StoredExperiment

FACETS = ("status", "task", "agent", "seed", "medal", "verdict", "cause", "experiment", "arm")
"""Columns by whose values runs are filtered."""
SORTED = ("created_at", "task", "agent", "status", "score", "percentile", "cost_usd", "seconds")
"""Columns by which runs are sorted."""


@dataclass(frozen=True, kw_only=True)
class RunQuery:
    """Which runs, and how many.

    Attributes:
        search: Words that all occur in the run's id, task, agent, experiment, arm or message.
        wanted: Accepted values of columns of `FACETS`; a missing value is the empty text.
        sort: A column of `SORTED`; runs without a value come last.
        ascending: The order; by default the newest or highest is first.
        after: `RunTable.next` of the previous rows.
        limit: Maximum number of rows.
        partial: Whether runs that take long to read may be missing; `RunTable.unread` counts them.
        facets: Columns of `FACETS` whose values are counted.
    """

    search: str = ""
    wanted: Mapping[str, frozenset[str]] = field(default_factory=dict)
    sort: str = "created_at"
    ascending: bool = False
    after: str | None = None
    limit: int = 100
    partial: bool = False
    facets: tuple[str, ...] = FACETS


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Runs that a form requests: one for each seed.

    Attributes:
        sandbox: None chooses one.
        time_limit: In seconds; None: the agent's own.
        options: Of the agent.
    """

    task: str
    agent: str
    seeds: tuple[int, ...] = (0,)
    sandbox: str | None = None
    time_limit: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


class RunTable(NamedTuple):
    """Runs that match a query.

    Attributes:
        rows: Records with the columns of the run index, and `labels`.
        total: How many match, on all pages.
        facets: For each of these columns its values and how many runs have them, if only its own filter were open.
        next: Where the next rows begin; None if these are the last.
        titles: What people call a value of a facet, where that is something else.
        unread: How many runs were not read yet.
    """

    rows: list[Record]
    total: int
    facets: dict[str, list[tuple[str, int]]]
    next: str | None
    titles: Mapping[str, str] = {}
    unread: int = 0


class Source(Protocol):
    """Where runs come from. Every method shows only what its user may see.

    Errors are `MlereduxError`, and `NotFound` for a run that does not exist or is not the user's to see.
    """

    @property
    def place(self) -> str:
        """Where the runs are stored, for people."""

    @property
    def folder(self) -> Path | None:
        """The directory of the runs, if they are in one that the user may see as a whole."""

    @property
    def data_dir(self) -> Path | None:
        """The directory of prepared data; None: the default one."""

    def shown(self, page: str) -> str:
        """The text of a page, without what its readers may not see."""

    def runs(self, query: RunQuery) -> RunTable:
        """The runs that match."""

    def run(self, run_id: str) -> Run:
        """A run, for reading only."""

    def experiments(self, experiment: str | None = None) -> Sequence[StoredExperiment]:
        """Experiments that are not records in `folder`, newest first, without cells; or the one with this id."""

    def submissions(self) -> Sequence[Record]:
        """What people submitted to technique tasks in forms of the site: as `Visit.submissions`."""

    def version(self, run_id: str | None = None) -> str:
        """A text that changes when something of a run does, or of any run; cheap enough to ask each second."""

    def stop(self, run_ids: Iterable[str]) -> Iterator[str]:
        """Stop runs; a sentence on each."""

    def retry(self, run_ids: Iterable[str]) -> Iterator[str]:
        """Request the same runs once more; a sentence on each."""

    def launch(self, asked: Launch) -> Iterator[str]:
        """Request runs; a sentence on each."""

    def label(self, run_ids: Iterable[str], name: str, value: str) -> Iterator[str]:
        """Set a label of runs, or remove it where the value is empty; a sentence on each."""

    def columns(self) -> Mapping[str, Any]:
        """What layouts show beside: the title of the site and the user's name, if there are users."""
