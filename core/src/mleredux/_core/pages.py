"""Web pages and panels that plugins add to the pages over runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from mleredux._core.cli.backend import Record
    from mleredux._core.store import Run
    from mleredux.models import RunPlan
    from mleredux.models.experiment import Plan
    from mleredux.models.request import Cell


class StoredExperiment(NamedTuple):
    """An experiment that a server stores.

    Attributes:
        id: As in the column `experiment` of its runs.
        title: Its name, for people.
        plan: Its design has the id as its name.
        cells: All its runs.
        changes: After its creation, each with `time`, `what` and `results`, the number of runs that had ended.
        stopped: Why no more runs are started, if a budget or the stopping rule ended it.
    """

    id: str
    title: str
    plan: Plan
    created_at: datetime
    """When it was created, in UTC."""
    cells: Sequence[tuple[Cell, RunPlan]] = ()
    changes: Sequence[Mapping[str, Any]] = ()
    stopped: str | None = None


class Visit(Protocol):
    """A request for a page; everything shows only what its visitor may see."""

    @property
    def parts(self) -> Mapping[str, str]:
        """What the address gives for the names in braces of the page's path."""

    @property
    def query(self) -> Mapping[str, list[str]]:
        """The address's query: for each name its values."""

    @property
    def form(self) -> Mapping[str, list[str]]:
        """Of an action: for each name of a field of its form the values."""

    @property
    def files(self) -> Mapping[str, Path]:
        """Of an action: the files that were uploaded, by the names of their fields; they exist until it returns."""

    @property
    def static(self) -> bool:
        """Whether the page is for an export, which opens offline."""

    @property
    def link(self) -> Callable[..., str]:
        """Makes addresses, as in templates: `link("runs", run.id, "log", line=7)`."""

    @property
    def user(self) -> str:
        """Who signed in; empty where nobody does."""

    @property
    def folder(self) -> Path | None:
        """The directory of runs, if they are in one."""

    @property
    def data_dir(self) -> Path | None:
        """The directory of prepared data; None: the default one."""

    def text(self, name: str, default: str = "") -> str:
        """Return the last value of a name in the query."""

    def rows(self, limit: int = 1000, search: str = "", **wanted: Iterable[str]) -> list[Record]:
        """Return rows of the list of runs, newest first, that have one of the values in each of these columns."""

    def open(self, run_id: str) -> Run:
        """Return a run, for reading only; raises `NotFound`."""

    def experiments(self, experiment: str | None = None) -> Sequence[StoredExperiment]:
        """Return experiments of a server, newest first, without cells; or the experiment with this id."""

    def submissions(self) -> Sequence[Record]:
        """Return the last submission of each user to each technique task of a server by its deadline.

        Each has `student`, `task`, `status`, `score`, `message`, `questions` (`name`, `score`, `weight`), and whether
        the task has a deadline as `class`.
        """

    def say(self, sentence: str) -> None:
        """Show a sentence above the page that the visitor sees next."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page at its own address.

    Attributes:
        path: Its address: `/compare`, `/tasks/{task}`.
        template: A Jinja template in the folder `templates` of the function's package; it extends `layout.html.j2`.
        function: `package.module:function`, imported when it is used: from a `Visit` to the template's values.
        menu: Its title in the menu of all pages; empty: it is only reached by links.
        selection: The title of a button on the list of runs, which opens it with the selected runs as values of `run`.
    """

    path: str
    template: str
    function: str
    menu: str = ""
    selection: str = ""

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            raise ValueError(f"the path {self.path!r} of a page does not begin with /")


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A section on the page of each run, or of each task.

    Attributes:
        title: Its title.
        template: As of a page; it has the content of the section only.
        function: `package.module:function`, imported when it is used: from a `Visit` and a `Run` (or a `Task`) to the
            template's values, or None for one that it has nothing on.
        place: What it is shown on.
    """

    title: str
    template: str
    function: str
    place: Literal["run", "task"] = "run"


@dataclass(frozen=True, kw_only=True)
class Action:
    """What a form of a page does: it answers only requests by POST that this site's own pages made.

    Each form has the hidden field that `{{ csrf }}` writes. Where nothing may be changed (`static`), show no form.

    Attributes:
        path: Its address, as of a page.
        function: `package.module:function`: from a `Visit` to the address of the page to show next, made by `link`.
    """

    path: str
    function: str


class Download(NamedTuple):
    """What the function of a page returns to send a file instead of the page; the file is closed when it was sent."""

    name: str
    """The file name that the browser suggests."""
    file: BinaryIO
    """The content, open for reading."""
