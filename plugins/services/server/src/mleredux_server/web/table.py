"""The list of runs for pages: filters, counts of facets, order and paging, all as database queries."""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from mleredux.errors import MlereduxError
from mleredux_view.shared import RunQuery, RunTable
from sqlalchemy import ColumnElement, Select, Text, cast, false, func, literal, null, or_, select, union_all
from sqlalchemy.orm import InstrumentedAttribute, Session

from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import Experiment, RunLabel, RunRow
from mleredux_server.protocol.problems import Problem
from mleredux_server.runs.lists import column_named, cursor_value, in_order, json_value, one_of, visible_to
from mleredux_server.schemas.pages import bad_cursor

_SHOWN = (
    "id", "task", "agent", "seed", "sandbox", "status", "cause", "score", "medal", "verdict", "created_at",
    "updated_at", "arm", "percentile", "started_at", "seconds", "paused_seconds", "tokens", "cost_usd", "message",
    "curve", "labels",
)  # fmt: skip
_SEARCHED = ("id", "task", "agent", "experiment_id", "arm", "message", "status", "cause")
_NAMED = 500
"""Maximum number of experiments whose names are looked up for a page."""
_SPECIAL = re.compile(r"[%_/]")
"""Special characters in LIKE patterns."""
_Condition = ColumnElement[bool]
_Column = InstrumentedAttribute[Any]
_Counts = tuple[int, dict[str, list[tuple[str, int]]]]
_KEPT = 100
_kept: WeakKeyDictionary[Any, dict[tuple[Any, ...], _Counts]] = WeakKeyDictionary()
"""For each database: counts by the state of the runs, the user and the query."""
_lock = threading.Lock()


def run_table(session: Session, caller: Caller, query: RunQuery) -> RunTable:
    """Return the runs that match, among those that a user may see.

    Raises:
        MlereduxError: `query.after` is not from this list.
    """
    like = (
        "like" if session.get_bind().dialect.name == "sqlite" else "ilike"
    )  # SQLite's LIKE ignores case, and is faster than lower
    searched = [*visible_to(caller, RunRow.project_id), *(_has(word, like) for word in query.search.split())]
    chosen = {name: _accepted(column_named(name), values) for name, values in query.wanted.items()}
    total, facets = _kept_counts(session, caller, query, searched, chosen)
    columns = [getattr(RunRow, name) for name in _SHOWN]
    matching = select(*columns, RunRow.experiment_id.label("experiment")).where(*searched, *chosen.values())
    order, at = column_named(query.sort), None
    if query.after is not None:
        at = _place(order, query.after)
    shown = in_order(session, matching, order, not query.ascending, at, query.limit + 1)
    rows = [{name: json_value(value) for name, value in row._mapping.items()} for row in shown[: query.limit]]
    after = json.dumps([rows[-1][order.key], rows[-1]["id"]]) if len(shown) > query.limit else None
    for row in rows:
        row["curve"] = row["curve"] or []
    return RunTable(rows, total, facets, after, _names(session, facets.get("experiment", ())))


def version_of_runs(session: Session, caller: Caller) -> str:
    """Return a string that changes when a run that a user may see is added or removed, or its row changes."""
    aggregates = (func.count(), func.max(RunRow.updated_at), func.sum(RunRow.log_bytes))
    return "-".join(map(str, session.execute(select(*aggregates).where(*visible_to(caller, RunRow.project_id))).one()))


def _has(word: str, like: str) -> _Condition:
    """Return the condition that a word occurs in one of a run's columns, the name of its experiment or a label."""
    if "\0" in word:  # which no database stores
        return false()
    pattern = "%" + _SPECIAL.sub(r"/\g<0>", word) + "%"

    def has(column: Any) -> _Condition:
        condition: _Condition = getattr(column, like)(pattern, escape="/")
        return condition

    return or_(
        *(has(getattr(RunRow, name)) for name in _SEARCHED),
        RunRow.id.in_(select(RunLabel.run_id).where(has(RunLabel.name + "=" + RunLabel.value))),
        RunRow.experiment_id.in_(select(Experiment.id).where(has(Experiment.name))),
    )


def _accepted(column: _Column, values: Iterable[str]) -> _Condition:
    """Return the condition that a column has one of these values; an empty string stands for no value."""
    accepted = {value for value in values if "\0" not in value}
    known: list[Any] = sorted(accepted - {""})
    if column.property.columns[0].type.python_type is int:
        known = [int(value) for value in known if value.removeprefix("-").isdecimal() and len(value) < 19]
    condition = one_of(column, known)
    return or_(condition, column.is_(None)) if "" in accepted else condition


def _kept_counts(
    session: Session, caller: Caller, query: RunQuery, searched: Sequence[_Condition], chosen: Mapping[str, _Condition]
) -> _Counts:
    """Count like `_counted`, cached until a run changes; counts without facets are not cached."""
    if not query.facets:
        return _counted(session, searched, chosen, ())
    wanted = tuple(sorted(query.wanted.items()))
    seen = None if caller.all_projects else frozenset(caller.projects)
    key = (version_of_runs(session, caller), seen, query.search, wanted, query.facets)
    with _lock:
        kept = _kept.setdefault(session.get_bind(), {})
        if (counts := kept.get(key)) is not None:
            return counts
    counts = _counted(session, searched, chosen, query.facets)
    with _lock:
        kept[key] = counts
        while len(kept) > _KEPT:
            del kept[next(iter(kept))]
    return counts


def _counted(
    session: Session, searched: Sequence[_Condition], chosen: Mapping[str, _Condition], facets: Sequence[str]
) -> _Counts:
    """Count the matching runs and, for each facet, its values without its own filter, in one query."""
    columns: dict[str, Any] = {name: cast(column_named(name), Text).label(name) for name in facets}
    matching = select(*columns.values() or [RunRow.id]).where(*searched, *chosen.values()).cte("matching")
    parts: list[Select[*tuple[Any, ...]]] = [select(literal(""), null(), func.count()).select_from(matching)]
    for name, column in columns.items():
        value: Any = column if name in chosen else matching.c[name]
        part = select(literal(name), value, func.count()).group_by(value)
        if name in chosen:
            part = part.where(*searched, *(condition for other, condition in chosen.items() if other != name))
        parts.append(part)
    counts: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for name, value, count in session.execute(union_all(*parts)):
        counts[name].append((value or "", count))
    ordered = {name: sorted(counts[name], key=lambda entry: (-entry[1], entry[0])) for name in facets}
    return counts[""][0][1], ordered


def _place(order: _Column, after: str) -> tuple[Any, str]:
    try:
        value, run_id = json.loads(after)
        if type(run_id) is not str or "\0" in after or "\\u0000" in after:
            raise bad_cursor()
        return cursor_value(order, value), run_id
    except (ValueError, TypeError, RecursionError, Problem):
        raise MlereduxError("The address is not a page of this list.", hint="Open the list again.") from None


def _names(session: Session, experiments: Sequence[tuple[str, int]]) -> dict[str, str]:
    """Return the names of experiments by their ids."""
    ids = [value for value, _ in experiments[:_NAMED] if value]
    query = select(Experiment.id, Experiment.name).where(Experiment.id.in_(ids))
    return {row.id: row.name for row in session.execute(query)} if ids else {}
