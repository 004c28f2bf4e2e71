"""All runs: search, facets, sorting, live rows; and what is done to the runs that are selected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from starlette.responses import RedirectResponse, Response

from mleredux_view.source import FACETS, SORTED, RunQuery, RunTable
from mleredux_view.texts import short_agent, words
from mleredux_view.visit import Shown, Visit, action, page

_OPEN = ("status", "task", "agent")
_VALUES = 30
_SHOWN = 50
_EXPORTED = 5_000
_MOST_SELECTED = 500
_TITLES = {
    "created_at": "newest",
    "cost_usd": "cost",
    "seconds": "agent run time",
    "verdict": "Verdict",
}


@dataclass(frozen=True)
class Value:
    """A value of a facet."""

    value: str
    title: str
    count: int
    chosen: bool


@dataclass(frozen=True)
class Facet:
    """A filter: its values, the chosen and most frequent first; `more` are not listed."""

    name: str
    title: str
    values: list[Value]
    more: int
    chosen: int
    open: bool


class Facets(list[Facet]):
    """All filters, and the address of the rows that follow."""

    more: str | None = None


@page("/")
def runs(visit: Visit) -> Shown:
    """The list, or a part of it for a script."""
    query = query_of(visit)
    if visit.fragment and query.after is not None:
        table = visit.source.runs(replace(query, facets=()))
        return Shown("runs_rows.html.j2", {"table": table, "more": _more(visit, table)})
    version = "" if visit.fragment or visit.static else visit.source.version()  # before the rows: no change is missed
    table = visit.source.runs(query)
    facets = Facets(_facets(table, query))
    facets.more = _more(visit, table)
    values = {
        "version": version,
        "table": table,
        "query": query,
        "facets": facets,
        "open": bool(query.search or query.wanted),
    }
    sorts = [(name, _TITLES.get(name, words(name))) for name in SORTED]
    return Shown(
        "runs_results.html.j2" if visit.fragment else "runs.html.j2", {**values, "sorts": sorts, "version": version}
    )


@action("/actions/stop")
def stop(visit: Visit) -> Response:
    """Stop the selected runs."""
    return _done(visit, visit.source.stop(selected(visit)))


@action("/actions/retry")
def retry(visit: Visit) -> Response:
    """Request the selected runs once more."""
    return _done(visit, visit.source.retry(selected(visit)))


def query_of(visit: Visit) -> RunQuery:
    """Return what the address asks for; what it can't mean is ignored."""
    sort = visit.text("sort")
    return RunQuery(
        search=visit.text("q")[:500],
        wanted={name: frozenset(values) for name in FACETS if (values := _given(visit, name))},
        sort=sort if sort in SORTED else SORTED[0],
        ascending=visit.text("up") == "1",
        after=visit.text("after") or None,
        limit=_EXPORTED if visit.static else _SHOWN,
        partial=not visit.static,
    )


def _given(visit: Visit, name: str) -> list[str]:
    return ["" if value == "none" else value for value in visit.query.get(name, [])]


def _more(visit: Visit, table: RunTable) -> str | None:
    if table.next is None:
        return None
    asked = {name: values for name, values in visit.query.items() if name != "after"}
    return visit.link("", **asked, after=table.next)


def _facets(table: RunTable, query: RunQuery) -> Iterator[Facet]:
    for name in FACETS:
        counted = dict(table.facets[name])
        chosen = query.wanted.get(name, frozenset())
        if len(counted) < 2 and not chosen:
            continue
        ordered = sorted({**dict.fromkeys(chosen, 0), **counted}.items(), key=lambda item: item[0] not in chosen)
        values = [
            Value(value or "none", table.titles.get(value) or _title(name, value), count, value in chosen)
            for value, count in ordered
        ]
        shown = values[: max(_VALUES, len(chosen))]
        more = len(values) - len(shown)
        yield Facet(name, words(name).capitalize(), shown, more, len(chosen), name in _OPEN or bool(chosen))


def _title(name: str, value: str) -> str:
    return short_agent(value) if name == "agent" and value else words(value) or "none"


def selected(visit: Visit) -> list[str]:
    """The runs that are selected on the list."""
    return visit.form.get("run", [])[:_MOST_SELECTED]


def _done(visit: Visit, sentences: Iterator[str]) -> Response:
    for sentence in sentences:
        visit.say(sentence)
    return RedirectResponse(visit.link(), 303)
