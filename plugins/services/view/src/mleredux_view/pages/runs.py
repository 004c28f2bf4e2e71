"""All runs: search, facets, sorting, live rows, and actions on selected runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mleredux.errors import MlereduxError
from starlette.responses import RedirectResponse, Response

from mleredux_view.source import FACETS, SORTED, RunQuery, RunTable
from mleredux_view.texts import short_agent, words
from mleredux_view.visit import Shown, Table, Visit, action, page

_OPEN = ("status", "task", "agent")
_VALUES = 30
_SHOWN = 50
_MOST_SHOWN = 1_000
_EXPORTED = 5_000
_MOST_SELECTED = 5_000
_MAX_SENTENCES = 10
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
    """A filter: its values, the selected and most frequent first; `more` values are not listed."""

    name: str
    title: str
    values: list[Value]
    more: int
    chosen: int
    open: bool


@page("/")
def runs(visit: Visit) -> Shown:
    """Show the list, or a part of it for a script."""
    query = query_of(visit)
    if visit.fragment and query.after is not None:
        table = visit.source.runs(replace(query, facets=()))
        return Shown("runs_rows.html.j2", {"table": table, "more": _more(visit, table)})
    # before the rows, so that no change is missed
    version = "" if visit.fragment or visit.static else visit.source.version()
    table = visit.source.runs(query)
    values = {
        "version": version,
        "table": table,
        "query": query,
        "facets": list(_facets(table, query)),
        "more": _more(visit, table),
        "open": bool(query.search or query.wanted),
        "sorts": [(name, _TITLES.get(name, words(name))) for name in SORTED],
        "heads": Table(visit, "", table.rows, SORTED, query.sort, query.ascending),
    }
    return Shown("runs_results.html.j2" if visit.fragment else "runs.html.j2", values)


@action("/actions/stop")
def stop(visit: Visit) -> Response:
    """Stop the selected runs."""
    return finish(visit, visit.source.stop(selected(visit)))


@action("/actions/retry")
def retry(visit: Visit) -> Response:
    """Request the selected runs once more."""
    return finish(visit, visit.source.retry(selected(visit)))


def query_of(visit: Visit) -> RunQuery:
    """Return the query in the URL; invalid parts are ignored."""
    sort = visit.text("sort")
    return RunQuery(
        **_chosen(visit.query),
        sort=sort if sort in SORTED else SORTED[0],
        ascending=visit.text("up") == "1",
        after=visit.text("after") or None,
        limit=_EXPORTED if visit.static else max(_SHOWN, visit.count("rows", _SHOWN, _MOST_SHOWN)),
        partial=not visit.static,
    )


def _chosen(values: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return the search and filters of a URL or a form, as fields of `RunQuery`."""
    known = {name: ["" if value == "none" else value for value in values.get(name, [])] for name in FACETS}
    wanted = {name: frozenset(accepted) for name, accepted in known.items() if accepted}
    return {"search": (values.get("q") or [""])[-1][:500], "wanted": wanted}


def _more(visit: Visit, table: RunTable) -> str | None:
    return visit.address(after=table.next, rows=None) if table.next is not None else None


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
    """Return the runs selected on the list; with `all`, every run that its filters match.

    Raises:
        MlereduxError: Too many runs are selected.
    """
    if "all" not in visit.form:
        return visit.form.get("run", [])
    table = visit.source.runs(RunQuery(**_chosen(visit.form), limit=_MOST_SELECTED, facets=()))
    if table.next is not None:
        hint = f"Filter the list to at most {_MOST_SELECTED:,} runs."
        raise MlereduxError(f"{table.total:,} runs are selected, which is too many.", hint=hint)
    return [row["id"] for row in table.rows]


def finish(visit: Visit, sentences: Iterator[str], to: str = "") -> Response:
    """Redirect to a page, by default the one with the form, which shows the first of the sentences."""
    shown = list(sentences)
    for sentence in shown[:_MAX_SENTENCES]:
        visit.say(sentence)
    if len(shown) > _MAX_SENTENCES:
        visit.say(f"… and {len(shown) - _MAX_SENTENCES:,} more.")
    path, query = visit.back or (visit.link(), {})
    return RedirectResponse(to or replace(visit, path=path, query=query).address(), 303)
