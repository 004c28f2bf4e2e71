"""Requests for pages, and the declaration of pages."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qs, urlencode

from markupsafe import Markup
from mleredux.errors import MlereduxError, NotFound, PluginError, foreign_code
from mleredux.plugin.artifact import Run
from mleredux.plugin.command import Record
from mleredux.plugin.page import Action, Page, Panel, StoredExperiment
from starlette.responses import Response

from mleredux_view.source import RunQuery, Source
from mleredux_view.texts import in_order, key_of

BACK = "back"
"""The form field that contains the URL of the form's page."""
CSRF = "csrf"
"""The form field that contains the session's secret."""
_SESSIONS = 1_000
_said: OrderedDict[str, list[str]] = OrderedDict()


class Registered(NamedTuple):
    """A page, panel or action, and the plugin that adds it."""

    item: Page | Panel | Action
    """The declaration."""
    plugin: str
    """The distribution that registered it."""

    @property
    def package(self) -> str:
        """Return the package whose `templates` folder contains its template."""
        return self.item.function.partition(".")[0].partition(":")[0]

    def call(self, *arguments: Any) -> Any:
        """Call its function.

        Raises:
            PluginError: The function cannot be imported, or fails.
            MlereduxError: The function raised it.
        """
        with self.isolated():
            return resolve_name(self.item.function)(*arguments)

    def isolated(self) -> AbstractContextManager[None]:
        """Return a context that names the plugin if the function or template of its page fails."""
        name = self.item.title if isinstance(self.item, Panel) else self.item.path
        return foreign_code(
            PluginError, f"The page {name} of plugin {self.plugin!r} failed", "Fix or update the plugin."
        )


@dataclass(frozen=True)
class Visit:
    """A request for a page.

    Attributes:
        source: The runs that the visitor may see.
        parts: Values for the names in braces in the page's path.
        query: Values of the URL's query by name.
        link: Creates URLs, as in templates.
        static: Whether the page is for an export, without forms and including everything that would be loaded later.
        fragment: Whether only a part of the page is requested.
        form: For actions: the values of each field.
        files: For actions: the uploaded files, by field.
        session: A secret of the visitor's session, which every form contains; empty: there are no forms.
        also: Pages and panels that exist only on this site.
        path: The path of the page's URL.
        problem: Why the form on the page was refused, if it is shown again.
    """

    source: Source
    parts: Mapping[str, str]
    query: Mapping[str, list[str]]
    link: Callable[..., str]
    static: bool = False
    fragment: bool = False
    form: Mapping[str, list[str]] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)
    session: str = ""
    also: Sequence[Registered] = ()
    path: str = ""
    problem: MlereduxError | None = None

    @property
    def csrf(self) -> Markup:
        """Return the hidden fields of a form, which prove that a page of this site created it, and identify the
        page."""
        hidden = Markup('<input type="hidden" name="{}" value="{}">')
        return hidden.format(CSRF, self.session) + hidden.format(BACK, self.address())

    def address(self, **changed: object) -> str:
        """Return the URL of the page with some query values changed; None removes a value."""
        values = {name: value for name, value in {**self.query, **changed}.items() if value is not None}
        return f"{self.path}?{urlencode(values, doseq=True)}" if values else self.path

    @property
    def back(self) -> tuple[str, dict[str, list[str]]] | None:
        """Return path and query of the page with the submitted form, if it is a page of this site."""
        path, _, query = (self.form.get(BACK) or [""])[-1].partition("?")
        here = path.startswith(self.link()) and not path.startswith("//") and path.isprintable() and "\\" not in path
        return (path, parse_qs(query)) if here else None

    def table(self, name: str, rows: Iterable[Any], *columns: str) -> Table:
        """Return a table with rows in the order requested in the URL, and headings that link to other orders."""
        return Table(self, name, list(rows), columns)

    def say(self, sentence: str) -> None:
        """Show a sentence above the next page that the visitor sees."""
        add_message(self.session, sentence)

    def messages(self) -> list[str]:
        """Return the sentences to show, which were added since the last page."""
        return [] if self.static or self.fragment else _said.pop(self.session, [])

    def text(self, name: str, default: str = "") -> str:
        """Return the last value of a name in the query."""
        return (self.query.get(name) or [default])[-1]

    def count(self, name: str, default: int, most: int = 2**53) -> int:
        """Return the value of a name in the query as a nonnegative integer; the default if it is not one."""
        text = self.text(name)
        return min(int(text), most) if text.isdecimal() and len(text) < 20 else default

    @cached_property
    def run(self) -> Run:
        """Return the run named in the URL.

        Raises:
            NotFound: The run does not exist, or is not visible to the visitor.
        """
        return self.source.run(self.parts["run_id"])

    @property
    def user(self) -> str:
        """Return the name of the signed-in user; empty if there is none."""
        return self.source.columns()["user"] or ""

    @property
    def folder(self) -> Path | None:
        """Return the directory of runs, if there is one."""
        return self.source.folder

    @property
    def data_dir(self) -> Path | None:
        """Return the directory of prepared data; None: the default directory."""
        return self.source.data_dir

    def rows(self, limit: int = 1000, search: str = "", **wanted: Iterable[str]) -> list[Record]:
        """Return the newest runs that have one of the accepted values in each of these columns."""
        chosen = {name: frozenset(values) for name, values in wanted.items()}
        return self.source.runs(RunQuery(search=search, wanted=chosen, limit=limit, facets=())).rows

    def open(self, run_id: str) -> Run:
        """Return a run, for reading only."""
        return self.source.run(run_id)

    def experiments(self, experiment: str | None = None) -> Sequence[StoredExperiment]:
        """Return the experiments of a server, the newest first, without cells; or only the one with this id."""
        return self.source.experiments(experiment)

    def submissions(self) -> Sequence[Record]:
        """Return people's submissions to technique tasks on a server: the last one to each task before its deadline."""
        return self.source.submissions()


class Table:
    """A table with headings that sort it, by links such as `?sort=tokens.name&up=1`.

    Args:
        visit: The visit, which contains the URL.
        name: The name of the table on its page; empty: columns have no prefix.
        rows: Rows in their default order.
        columns: The attributes or keys by which the table can be sorted, with dots for nested ones.
        sort, up: The column and direction by which the rows are already sorted.
    """

    def __init__(
        self, visit: Visit, name: str, rows: list[Any], columns: Sequence[str], sort: str = "", up: bool = False
    ) -> None:
        self._visit, self._prefix, self._sort, self._up = visit, f"{name}." if name else "", sort, up
        chosen = {f"{self._prefix}{column}": column for column in columns}.get(visit.text("sort"))
        if chosen and not sort:
            self._sort, self._up = chosen, visit.text("up") == "1"
            rows = in_order(rows, self._sort, self._up)
        self.rows = rows

    def head(self, column: str, title: str, kind: str = "") -> Markup:
        """Return the heading of a column; the link of the current sort column reverses the order."""
        at = column == self._sort
        order = Markup(' aria-sort="{}"').format("ascending" if self._up else "descending") if at else ""
        text: str | Markup = title
        if not self._visit.static:
            falls = self._up if at else any(isinstance(key_of(row, column), float) for row in self.rows[:20])
            up = None if falls else "1"  # numbers and times begin with the highest
            to = self._visit.address(sort=self._prefix + column, up=up, after=None, rows=None)
            text = Markup('<a href="{}">{}</a>').format(to, title)
        return Markup('<th scope="col" class="sorts {}"{}>{}</th>').format(kind, order, text)


class Shown(NamedTuple):
    """The content of a page: a template, its values, and the status of the response."""

    template: str
    values: Mapping[str, Any]
    status: int = 200


class Declared(NamedTuple):
    """A page or an action with its URL; `registered` is set if a plugin's hook added it."""

    path: str
    function: Callable[[Visit], Shown | Response]
    method: str
    registered: Registered | None = None


_F = TypeVar("_F", bound=Callable[[Visit], Any])


def add_message(session: str, sentence: str) -> None:
    """Show a sentence above the next page that the visitor of a session sees."""
    _said.setdefault(session, []).append(sentence[:1000])
    while len(_said) > _SESSIONS:
        _said.popitem(last=False)


def page(path: str) -> Callable[[_F], _F]:
    """Declare a function as the page for a path, for reading only."""
    return _declare(path, "GET")


def action(path: str) -> Callable[[_F], _F]:
    """Declare a function that changes something; it receives only POST requests from this site's own pages."""
    return _declare(path, "POST")


def _declare(path: str, method: str) -> Callable[[_F], _F]:
    def declare(function: _F) -> _F:
        function.declared = Declared(path, function, method)  # type: ignore[attr-defined]
        return function

    return declare


def declared(module: object) -> Iterator[Declared]:
    """Yield the pages and actions of a module."""
    for value in vars(module).values():
        if isinstance(entry := getattr(value, "declared", None), Declared):
            yield entry


def missing(what: str) -> NotFound:
    """Return an error for a URL that leads nowhere."""
    return NotFound(f"There is no {what}.", hint="See the list of runs.")
