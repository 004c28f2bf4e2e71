"""A request for a page, and how pages are declared."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple, TypeVar

from markupsafe import Markup
from mleredux.errors import MlereduxError, NotFound, PluginError, one_line
from mleredux.plugin.artifact import Run
from mleredux.plugin.command import Record
from mleredux.plugin.page import Action, Page, Panel, StoredExperiment
from starlette.responses import Response

from mleredux_view.source import RunQuery, Source

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

    @property
    def csrf(self) -> Markup:
        """The hidden field of a form that shows that a page of this site made it."""
        return Markup('<input type="hidden" name="{}" value="{}">').format(CSRF, self.session)

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
