"""A request for a page, and how pages are declared."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qs, urlencode

from markupsafe import Markup
from mleredux.errors import MlereduxError, NotFound, PluginError, one_line
from mleredux.plugin.artifact import Run
from mleredux.plugin.command import Record
from mleredux.plugin.page import Action, Page, Panel, StoredExperiment
from starlette.responses import Response

from mleredux_view.source import RunQuery, Source
from mleredux_view.texts import in_order, key_of

BACK = "back"
"""The field of forms that has the address of their page."""
CSRF = "csrf"
"""The field of forms that has the secret of the session."""
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
        """The package whose folder `templates` holds its template."""
        return self.item.function.partition(".")[0].partition(":")[0]

    def call(self, *arguments: Any) -> Any:
        """Call its function.

        Raises:
            PluginError: It can't be imported, or fails.
            MlereduxError: It says so.
        """
        try:
            return resolve_name(self.item.function)(*arguments)
        except MlereduxError:
            raise
        except Exception as error:  # a plugin's code may raise anything
            raise self.failed(error) from error

    def failed(self, error: Exception) -> PluginError:
        """Return the error of a page whose function or template fails."""
        reason = one_line(error)[:300]
        name = self.item.title if isinstance(self.item, Panel) else self.item.path
        return PluginError(
            f"The page {name} of plugin {self.plugin!r} fails ({reason}).", hint="Fix or update the plugin."
        )


@dataclass(frozen=True)
class Visit:
    """A request for a page.

    Attributes:
        source: The runs that the visitor may see.
        parts: What the address gives for the names in braces of the page's path.
        query: The address's query: for each name its values.
        link: Makes addresses, as in templates.
        static: Whether the page is for an export: without forms, and with all that would be loaded later.
        fragment: Whether only a part of the page is replaced.
        form: Of an action: for each name of a field the values.
        files: Of an action: the files that were uploaded, by their fields.
        session: A secret of the visitor's session, which every form of the pages has; empty: there are no forms.
        also: Pages and panels that only this site has.
        path: Of the address of the page.
        problem: Why the form that the page shows again was refused.
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
        """The hidden fields of a form: a page of this site made it, and which one."""
        hidden = Markup('<input type="hidden" name="{}" value="{}">')
        return hidden.format(CSRF, self.session) + hidden.format(BACK, self.address())

    def address(self, **changed: object) -> str:
        """The address of the page, with other values of its query; None removes one."""
        values = {name: value for name, value in {**self.query, **changed}.items() if value is not None}
        return f"{self.path}?{urlencode(values, doseq=True)}" if values else self.path

    @property
    def back(self) -> tuple[str, dict[str, list[str]]] | None:
        """Path and query of the page of the form that was sent, if it is one of this site."""
        path, _, query = (self.form.get(BACK) or [""])[-1].partition("?")
        here = path.startswith(self.link()) and not path.startswith("//") and path.isprintable() and "\\" not in path
        return (path, parse_qs(query)) if here else None

    def table(self, name: str, rows: Iterable[Any], *columns: str) -> Table:
        """Rows in the order that the address asks for, and headings that lead to other orders."""
        return Table(self, name, list(rows), columns)

    def say(self, sentence: str) -> None:
        """Show a sentence above the page that the visitor sees next."""
        say(self.session, sentence)

    def said(self) -> list[str]:
        """What was said since the last page."""
        return [] if self.static or self.fragment else _said.pop(self.session, [])

    def text(self, name: str, default: str = "") -> str:
        """The last value of a name in the query."""
        return (self.query.get(name) or [default])[-1]

    def count(self, name: str, default: int, most: int = 2**53) -> int:
        """The value of a name in the query as a number from 0 on; the default if it is none."""
        text = self.text(name)
        return min(int(text), most) if text.isdecimal() and len(text) < 20 else default

    @cached_property
    def run(self) -> Run:
        """The run that the address names.

        Raises:
            NotFound: It does not exist, or is not the visitor's to see.
        """
        return self.source.run(self.parts["run_id"])

    @property
    def user(self) -> str:
        """Who signed in; empty where nobody does."""
        return self.source.columns()["user"] or ""

    @property
    def folder(self) -> Path | None:
        """The directory of runs, if they are in one."""
        return self.source.folder

    @property
    def data_dir(self) -> Path | None:
        """The directory of prepared data; None: the default one."""
        return self.source.data_dir

    def rows(self, limit: int = 1000, search: str = "", **wanted: Iterable[str]) -> list[Record]:
        """The newest runs that have one of the values in each of these columns."""
        chosen = {name: frozenset(values) for name, values in wanted.items()}
        return self.source.runs(RunQuery(search=search, wanted=chosen, limit=limit, facets=())).rows

    def open(self, run_id: str) -> Run:
        """A run, for reading only."""
        return self.source.run(run_id)

    def experiments(self, experiment: str | None = None) -> Sequence[StoredExperiment]:
        """Experiments of a server, newest first, without cells; or the one with this id."""
        return self.source.experiments(experiment)

    def submissions(self) -> Sequence[Record]:
        """What people submitted to technique tasks of a server: the last submission to each task by its deadline."""
        return self.source.submissions()


class Table:
    """A table whose headings sort it, by links such as `?sort=tokens.name&up=1`.

    Args:
        visit: With the address.
        name: Of the table on its page; empty: its columns are named alone.
        rows: In the order that they have before another one is asked for.
        columns: The attributes or keys by which it can be sorted, with dots where they are nested.
        sort, up: The order that the rows have already.
    """

    def __init__(
        self, visit: Visit, name: str, rows: list[Any], columns: Sequence[str], sort: str = "", up: bool = False
    ) -> None:
        self._visit, self._prefix, self._sort, self._up = visit, f"{name}." if name else "", sort, up
        asked = {f"{self._prefix}{column}": column for column in columns}.get(visit.text("sort"))
        if asked and not sort:
            self._sort, self._up = asked, visit.text("up") == "1"
            rows = in_order(rows, self._sort, self._up)
        self.rows = rows

    def head(self, column: str, title: str, kind: str = "") -> Markup:
        """The heading of a column; the link of the one that sorts the table turns the order."""
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
    """What a page shows: a template and its values, and the status of the response."""

    template: str
    values: Mapping[str, Any]
    status: int = 200


class Declared(NamedTuple):
    """A page or an action, and its address; `registered` if a plugin's hook adds it."""

    path: str
    function: Callable[[Visit], Shown | Response]
    method: str
    registered: Registered | None = None


_F = TypeVar("_F", bound=Callable[[Visit], Any])


def say(session: str, sentence: str) -> None:
    """Show a sentence above the page that the visitor of a session sees next."""
    _said.setdefault(session, []).append(sentence[:1000])
    while len(_said) > _SESSIONS:
        _said.popitem(last=False)


def page(path: str) -> Callable[[_F], _F]:
    """Declare a function as the page of a path; a visitor may only read by it."""
    return _declare(path, "GET")


def action(path: str) -> Callable[[_F], _F]:
    """Declare a function that changes something: it gets only POST requests of this site's own pages."""
    return _declare(path, "POST")


def _declare(path: str, method: str) -> Callable[[_F], _F]:
    def declare(function: _F) -> _F:
        function.declared = Declared(path, function, method)  # type: ignore[attr-defined]
        return function

    return declare


def declared(module: object) -> Iterator[Declared]:
    """Yield the pages and actions of a module."""
    for value in vars(module).values():
        if isinstance(found := getattr(value, "declared", None), Declared):
            yield found


def missing(what: str) -> NotFound:
    """An error for an address that leads nowhere."""
    return NotFound(f"There is no {what}.", hint="See the list of runs.")
