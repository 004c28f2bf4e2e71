"""Web pages and panels that plugins add to the web pages about runs."""

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
    """An experiment stored by a server.

    Attributes:
        id: The value of the column `experiment` of its runs.
        title: The displayed name.
        plan: The plan, whose design has the id as its name.
        cells: All its runs.
        changes: Changes after its creation, each with `time`, `what` and `results`, the number of runs that had ended.
        stopped: Why no more runs are started, if a budget or the stopping rule ended it.
    """

    id: str
    title: str
    plan: Plan
    created_at: datetime
    """When the experiment was created, in UTC."""
    cells: Sequence[tuple[Cell, RunPlan]] = ()
    changes: Sequence[Mapping[str, Any]] = ()
    stopped: str | None = None


class Visit(Protocol):
    """A request for a page; all methods return only data that the visitor may see."""

    @property
    def parts(self) -> Mapping[str, str]:
        """The parts of the URL that match the names in braces in the page's path."""

    @property
    def query(self) -> Mapping[str, list[str]]:
        """The query of the URL: the values of each name."""

    @property
    def form(self) -> Mapping[str, list[str]]:
        """The form of an action: the values of each field, by name."""

    @property
    def files(self) -> Mapping[str, Path]:
        """The uploaded files of an action, by field name; they exist until the action returns."""

    @property
    def static(self) -> bool:
        """Whether the page is for an export, which opens offline."""

    @property
    def link(self) -> Callable[..., str]:
        """The function that creates URLs, as in templates: `link("runs", run.id, "log", line=7)`."""

    @property
    def user(self) -> str:
        """The signed-in user; empty if no one is signed in."""

    @property
    def folder(self) -> Path | None:
        """The directory of runs, if all runs are in one."""

    @property
    def data_dir(self) -> Path | None:
        """The directory of prepared data; None: the default directory."""

    def text(self, name: str, default: str = "") -> str:
        """Return the last value of a name in the query."""

    def rows(self, limit: int = 1000, search: str = "", **wanted: Iterable[str]) -> list[Record]:
        """Return rows of the list of runs, newest first, that have one of the given values in each given column."""

    def open(self, run_id: str) -> Run:
        """Return a run, for reading only; raises `NotFound`."""

    def experiments(self, experiment: str | None = None) -> Sequence[StoredExperiment]:
        """Return a server's experiments, newest first, without cells; or only the experiment with this id."""

    def submissions(self) -> Sequence[Record]:
        """Return each user's last submission to each technique task of a server before its deadline.

        Each record has `student`, `task`, `status`, `score`, `message`, `questions` (`name`, `score`, `weight`), and
        `class`, whether the task has a deadline.
        """

    def say(self, sentence: str) -> None:
        """Show a sentence above the next page that the visitor opens."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page at its own address.

    Attributes:
        path: Its URL path: `/compare`, `/tasks/{task}`.
        template: A Jinja template in the folder `templates` of the function's package; it extends `layout.html.j2`.
        function: `package.module:function`, imported on first use; takes a `Visit` and returns the template's
            variables.
        menu: Its title in the menu of all pages; empty: the page is only reached by links.
        selection: The title of a button on the list of runs, which opens the page with the selected runs as values of
            `run`.
    """

    path: str
    template: str
    function: str
    menu: str = ""
    selection: str = ""

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            raise ValueError(f"the path {self.path!r} of a page must begin with /")


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A section on the page of each run, or of each task.

    Attributes:
        title: Its title.
        template: As for a page, but with only the content of the section.
        function: `package.module:function`, imported on first use; takes a `Visit` and a `Run` (or a `Task`) and
            returns the template's variables, or None to show no panel.
        place: The kind of page that shows the panel.
    """

    title: str
    template: str
    function: str
    place: Literal["run", "task"] = "run"


@dataclass(frozen=True, kw_only=True)
class Action:
    """The handler of a form on a page. It accepts only POST requests from this site's own pages.

    Each form must contain the hidden field that `{{ csrf }}` writes. Show no form on `static` pages, which cannot
    change anything.

    Attributes:
        path: Its URL path, as for a page.
        function: `package.module:function`; takes a `Visit` and returns the URL of the page to show next, created with
            `link`.
    """

    path: str
    function: str


class Download(NamedTuple):
    """Returned by the function of a page to send a file instead of the page; the file is closed after sending.

    An image, as its name ends, can be the source of an `img` of a page.
    """

    name: str
    """The file name that the browser suggests."""
    file: BinaryIO
    """The content, open for reading."""
