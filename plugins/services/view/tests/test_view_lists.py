"""The list of a server is, by queries of its database, what the list of the same runs in a directory is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import Run, RunStore
from mleredux_client.cli.records import row_of
from mleredux_client.frames import run_row
from mleredux_client.models.run import RunRecord
from mleredux_server.database.tables import Experiment, Project, User
from mleredux_server.files.masks import Masks
from mleredux_server.runs.changes import change_run
from mleredux_server.schemas.runs import RunChange
from mleredux_server.web.source import ServerSource
from mleredux_server.web.table import _kept
from mleredux_support.postgresql import PostgresServer, find_binaries
from mleredux_support.server_local import LocalServer
from mleredux_testing.pytest_plugin import skip_or_fail
from mleredux_view.local import LocalSource
from mleredux_view.source import SORTED, RunQuery
from sqlalchemy import event, select

HOSTILE = "50% of_it/ 'quoted' É\\"
ASKED = (
    RunQuery(),
    RunQuery(wanted={"status": frozenset(["failed", "timed_out"])}),
    RunQuery(wanted={"status": frozenset(["done"]), "task": frozenset(["wine", "digits"])}),
    RunQuery(wanted={"medal": frozenset(["", "gold"]), "seed": frozenset(["0", "3", "x", "9" * 30])}),
    RunQuery(wanted={"cause": frozenset(["agent_crashed"]), "experiment": frozenset(["exp_trees"])}),
    RunQuery(wanted={"arm": frozenset([""]), "verdict": frozenset(["verified"])}),
    RunQuery(wanted={"task": frozenset(["nothing", "a\0b", "\udcff".encode("utf-8", "replace").decode()])}),
    RunQuery(search="WINE solver"),
    RunQuery(search="exit code 1"),
    RunQuery(search="team=blue", wanted={"status": frozenset(["done"])}),
    RunQuery(search="50% of_it/ 'quoted'"),
    RunQuery(search="5_%"),
    RunQuery(search="a\0b"),
    RunQuery(search="\\"),
)


class Both(NamedTuple):
    """The same runs twice."""

    server: LocalServer
    local: LocalSource
    source: ServerSource


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, make_run: Any) -> Iterator[Both]:
    """The same 40 runs in a directory and behind the account of an admin; ann has ten of them."""
    folder = tmp_path_factory.mktemp("lists")
    if request.param == "sqlite":
        with LocalServer(folder / "runs").running() as server:
            yield filled(server, make_run)
        return
    if (binaries := find_binaries()) is None:
        skip_or_fail("postgresql", "PostgreSQL is not installed (see .ci/postgresql)")
    with ExitStack() as stack:
        url = stack.enter_context(PostgresServer(binaries)).new_database()
        yield filled(stack.enter_context(LocalServer(folder / "runs", database=url).running()), make_run)


def filled(server: LocalServer, make_run: Any) -> Both:
    """Make the runs, give them to the users, and label three."""
    server.user("ann")
    with server.service.database.writing() as session:
        project, user = session.scalars(select(Project)).first(), session.scalars(select(User)).first()
        assert project is not None and user is not None
        session.add(Experiment(id="exp_trees", name="More trees", request={}, project_id=project.id, user_id=user.id))
    for number in range(40):
        how: dict[str, Any] = {"experiment": "exp_trees", "arm": f"arm {number % 8}"} if number % 4 == 0 else {}
        how |= {"status": "failed", "message": HOSTILE} if number == 7 else {}
        how |= {"status": "done", "paused": 30.0} if number == 8 else {}
        run = Run(make_run(server.service.store.path, number, **how))
        server.adopt(run, "ann" if number < 10 else "admin")
    made = Both(server, LocalSource(server.service.store), source_of(server, "admin"))
    chosen = [row["id"] for row in made.source.runs(RunQuery(limit=3)).rows]
    for source in (made.local, made.source):
        assert len(list(source.label(chosen, "team", "blue"))) == 3
    return made


def source_of(server: LocalServer, user: str) -> ServerSource:
    """What a user sees."""
    return ServerSource(server.service, server.caller(user), Masks(server.service))


def pages(source: Any, query: RunQuery) -> list[dict[str, Any]]:
    """All rows, by pages of seven."""
    rows, after = list[dict[str, Any]](), None
    while True:
        table = source.runs(RunQuery(**{**vars(query), "limit": 7, "after": after}))
        rows += table.rows
        if (after := table.next) is None:
            assert len(rows) == table.total
            return rows


@pytest.mark.parametrize("query", ASKED)
def test_both_have_the_same_runs_counts_and_columns(both: Both, query: RunQuery) -> None:
    local, server = both.local.runs(query), both.source.runs(query)
    assert server.total == local.total
    counted = [{name: dict(found) for name, found in table.facets.items()} for table in (local, server)]
    assert counted[0] == counted[1]
    rows = [[{**row, "updated_at": ""} for row in table.rows] for table in (local, server)]
    assert rows[0] == json.loads(json.dumps(rows[1]))


def test_results_are_the_same_in_every_list(both: Both) -> None:
    listed = {row["id"]: row for row in both.source.runs(RunQuery()).rows}
    http = httpx.Client(base_url=both.server.url, headers={"Authorization": f"Bearer {both.server.token}"})
    items = {item["id"]: item for item in http.get("/v1/runs?limit=100").json()["items"]}
    assert len(items) == 40
    for run_id, item in items.items():
        results = both.local.run(run_id).results()
        del results["curve"]
        data_frame = run_row(RunRecord.model_validate(item))
        for shown in (listed[run_id], item, data_frame, row_of(item)):
            assert {name: shown[name] for name in results} == results
    paused = next(row for row in listed.values() if row["paused_seconds"])
    assert paused["seconds"] > paused["paused_seconds"] == 30 and paused["tokens"] == 18_810


def test_some_of_what_is_asked_matches(both: Both) -> None:
    found = [both.source.runs(query).total for query in ASKED]
    assert found[0] == 40 and min(found[1:6] + found[7:10]) > 0
    assert found[10] == found[13] == 1 and found[6] == found[11] == found[12] == 0
    assert both.source.runs(RunQuery(search="more TREES")).total == 10
    assert both.source.runs(RunQuery()).titles == {"exp_trees": "More trees"}


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("sort", SORTED)
def test_every_order_has_the_same_pages(both: Both, sort: str, ascending: bool) -> None:
    query = RunQuery(sort=sort, ascending=ascending, facets=())
    local, server = ([row["id"] for row in pages(source, query)] for source in (both.local, both.source))
    assert len(set(server)) == 40 and server == local


@pytest.mark.parametrize(
    "after", ["", "x", "[]", "{}", '["a"]', "[null, null]", '[1, "x"]', '["2026", 3]', '["\\u0000", "x"]', "[" * 9999]
)
def test_a_place_of_another_list_is_refused_in_a_sentence(both: Both, after: str) -> None:
    with pytest.raises(MlereduxError, match="is not a page of this list"):
        both.source.runs(RunQuery(after=after))


def test_a_user_sees_and_hears_of_own_runs_only(both: Both) -> None:
    ann = source_of(both.server, "ann")
    own = {row["id"] for row in ann.runs(RunQuery()).rows}
    other = next(row["id"] for row in both.source.runs(RunQuery()).rows if row["id"] not in own)
    before = ann.version(), both.source.version()
    for value in ("1", None):
        change_run(both.server.service, both.server.caller("admin"), other, RunChange(labels={"seen": value}))
    assert len(own) == 10 and ann.runs(RunQuery(search=other)).total == 0
    assert ann.version() == before[0] and both.source.version() != before[1]


def test_orders_and_facets_are_read_from_indexes(both: Both) -> None:
    engine, said = both.server.service.database.engine, list[tuple[str, Any]]()
    if engine.dialect.name != "sqlite":
        return  # PostgreSQL reads so few rows without an index

    def listen(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        said.append((statement, parameters))

    _kept.clear()
    event.listen(engine, "before_cursor_execute", listen)
    for sort in ("created_at", "score", "percentile", "tokens", "cost_usd", "seconds"):
        both.source.runs(RunQuery(sort=sort))
    event.remove(engine, "before_cursor_execute", listen)
    with engine.connect() as connection:
        plans = {
            statement: [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
            for statement, parameters in said
            if statement.startswith(("SELECT", "WITH"))
        }
    assert any("COVERING INDEX ix_runs_facets" in step for plan in plans.values() for step in plan), plans
    assert sum("UNION ALL" in statement for statement, _ in said) == 1, "counts are kept until a run changes"
    ordered = [plan for statement, plan in plans.items() if "ORDER BY" in statement and "IS NULL" not in statement]
    assert len(ordered) == 6 and all("USING INDEX ix_runs_" in plan[0] and len(plan) == 1 for plan in ordered), ordered


def test_the_newest_runs_of_a_directory_without_an_index_are_listed_at_once(tmp_path: Path, make_run: Any) -> None:
    ids = sorted((make_run(tmp_path, number, steps=1).name for number in range(150)), reverse=True)
    source = LocalSource(RunStore(tmp_path))
    first, version = source.runs(RunQuery(partial=True)), source.version()
    assert [row["id"] for row in first.rows] == ids[: len(first.rows)]
    assert first.unread and len(first.rows) + first.unread == 150
    whole = source.runs(RunQuery(limit=200))
    assert [row["id"] for row in whole.rows] == ids and not whole.unread and source.version() != version
    again = source.runs(RunQuery(partial=True))
    assert (again.total, again.unread) == (150, 0)
