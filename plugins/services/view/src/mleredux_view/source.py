"""The interface through which pages read runs, wherever they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from mleredux.plugin.artifact import Run
from mleredux.plugin.command import Record
from mleredux.plugin.page import StoredExperiment

FACETS = ("status", "task", "agent", "seed", "medal", "verdict", "cause", "experiment", "arm")
"""Columns by which runs can be filtered."""
SORTED = ("created_at", "task", "agent", "status", "score", "percentile", "tokens", "cost_usd", "seconds")
"""Columns by which runs can be sorted."""


@dataclass(frozen=True, kw_only=True)
class RunQuery:
    """A query for runs.

    Attributes:
        search: Words that must all occur in the run's id, task, agent, experiment, arm or message.
        wanted: Accepted values by column of `FACETS`; an empty string matches a missing value.
        sort: A column of `SORTED`; runs without a value come last.
        ascending: The order; by default, the newest or highest comes first.
        after: The `RunTable.next` of the previous rows.
        limit: Maximum number of rows.
        partial: Whether runs that take long to read may be omitted; `RunTable.unread` counts them.
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
    """Runs requested by a form, one for each seed.

    Attributes:
        sandbox: The sandbox; None: selected automatically.
        time_limit: The time limit in seconds; None: that of the agent.
        options: Options of the agent.
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
        total: Number of matching runs on all pages.
        facets: For each of these columns, its values and their number of runs if the column's own filter were not set.
        next: Start of the next rows; None if these are the last.
        titles: Display names of values of a facet that have one.
        unread: Number of runs not yet read.
    """

    rows: list[Record]
    total: int
    facets: dict[str, list[tuple[str, int]]]
    next: str | None
    titles: Mapping[str, str] = {}
    unread: int = 0


class Source(Protocol):
    """The source of runs. Every method returns only data that its user may see.

    Errors are `MlereduxError`, or `NotFound` for a run that does not exist or is not visible to the user.
    """

    @property
    def place(self) -> str:
        """Return a description of where the runs are stored."""

    @property
    def folder(self) -> Path | None:
        """Return the directory of the runs, if there is one that the user may see as a whole."""

    @property
    def data_dir(self) -> Path | None:
        """Return the directory of prepared data; None: the default directory."""

    def shown(self, page: str) -> str:
        """Return the text of a page without the parts that its readers may not see."""

    def runs(self, query: RunQuery) -> RunTable:
        """Return the matching runs."""

    def run(self, run_id: str) -> Run:
        """Return a run, for reading only."""

    def experiments(self, experiment: str | None = None) -> Sequence[StoredExperiment]:
        """Return experiments that are not records in `folder`, the newest first, without cells; or only the one with
        this id."""

    def submissions(self) -> Sequence[Record]:
        """Return submissions to technique tasks made in forms of the site, in the format of `Visit.submissions`."""

    def version(self, run_id: str | None = None) -> str:
        """Return a string that changes when a run (or any run) does; it is cheap enough to call every second."""

    def stop(self, run_ids: Iterable[str]) -> Iterator[str]:
        """Stop runs, yielding a sentence about each."""

    def retry(self, run_ids: Iterable[str]) -> Iterator[str]:
        """Request the same runs once more, yielding a sentence about each."""

    def launch(self, form: Launch) -> Iterator[str]:
        """Request runs, yielding the id of each."""

    def label(self, run_ids: Iterable[str], name: str, value: str) -> Iterator[str]:
        """Set a label of runs, or remove it if the value is empty, yielding a sentence about each."""

    def columns(self) -> Mapping[str, Any]:
        """Return additional values for layouts: the title of the site and the user's name, if there are users."""
