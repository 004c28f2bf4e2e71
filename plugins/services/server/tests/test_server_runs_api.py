"""Runs over HTTP: created, listed, filtered, sorted, paged, visible to their project only."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from fastapi import Request, Response
from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import Job, Project, RunLabel, RunRow, User
from mleredux_server.runs.lists import Wanted, conditions, runs_page, shown_runs
from mleredux_server.schemas.pages import Paging
from mleredux_support.server_local import LocalServer
from sqlalchemy import delete, insert, select, text

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TASKS = ("digits", "wine", "diabetes", "breast-cancer")
STATUSES = ("done", "done", "done", "failed", "queued", "running", "cancelled")


def client_of(local: LocalServer, token: str) -> httpx.Client:
    return httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {token}"}, timeout=30)


@pytest.fixture(scope="module")
def people(local: LocalServer) -> dict[str, httpx.Client]:
    clients = {name: client_of(local, local.user(name)) for name in ("ann", "bob")}
    return {**clients, "admin": client_of(local, local.token)}


def seed_rows(local: LocalServer, user: str, number: int, *, seed: int = 0) -> list[str]:
    """Rows of runs as after months of use."""
    chance = random.Random(seed)
    with local.service.database.writing() as session:
        owner = session.scalars(select(User).where(User.name == user)).one()
        project = session.scalars(select(Project).where(Project.name == user)).one()
        rows, jobs, labels = [], [], []
        for index in range(number):
            run_id = f"2026{user}{seed}{index:08d}-{chance.randrange(10**6):06d}"
            status = chance.choice(STATUSES)
            both = {"id": run_id, "project_id": project.id, "user_id": owner.id}
            made = BEGIN + timedelta(seconds=chance.randrange(10**6))
            score = round(chance.random(), 2) if status == "done" else None
            facts = {"task": chance.choice(TASKS), "agent": "dummy", "sandbox": "process", "seed": index}
            asked = {"network": "none", "limits": {}, "options": {}, "request": {"context": "x" * 200}}
            became = {
                "status": status,
                "score": score,
                "medal": "gold" if score and score > 0.9 else None,
                "cause": "agent_crashed" if status == "failed" else None,
            }
            times = {"created_at": made, "updated_at": made}
            rows.append({**both, **facts, **asked, **became, **times, "labels": {"batch": str(index % 50)}})
            jobs.append({**both, "kind": "run", "state": "queued" if status == "queued" else "ended"})
            labels.append({"run_id": run_id, "name": "batch", "value": str(index % 50)})
        for table, values in ((Job, jobs), (RunRow, rows), (RunLabel, labels)):
            session.execute(insert(table), values)
    return [row["id"] for row in rows]


def forget_rows(local: LocalServer, ids: list[str]) -> None:
    with local.service.database.writing() as session:
        for table in (RunRow, Job):
            session.execute(delete(table).where(table.id.in_(ids)))


def pages(http: httpx.Client, **asked: Any) -> list[dict[str, Any]]:
    """Return runs of all pages."""
    items, url = [], str(httpx.URL("/v1/runs", params={"limit": 50, **asked}))
    while url:
        answered = http.get(url)
        assert answered.status_code == 200, answered.text
        items += answered.json()["items"]
        url = answered.links["next"]["url"] if "next" in answered.links else ""
    return items


@pytest.fixture(scope="module")
def seeded(local: LocalServer, people: dict[str, httpx.Client]) -> Iterator[list[str]]:
    ids = seed_rows(local, "ann", 400) + seed_rows(local, "bob", 60, seed=1)
    yield ids
    forget_rows(local, ids)


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        ({}, lambda run: True),
        ({"task": "wine"}, lambda run: run["task"] == "wine"),
        ({"status": ["failed", "running"]}, lambda run: run["status"] in ("failed", "running")),
        ({"cause": "agent_crashed"}, lambda run: run["cause"] == "agent_crashed"),
        ({"medal": "gold", "agent": "dummy"}, lambda run: run["medal"] == "gold"),
        ({"label": "batch:7"}, lambda run: run["labels"]["batch"] == "7"),
        ({"label": ["batch:7", "batch:8"]}, lambda run: False),
        ({"created_after": "2026-01-05T00:00:00Z"}, lambda run: run["created_at"] > "2026-01-05"),
        (
            {"created_after": "2026-01-05T02:00:00+02:00", "created_before": "2026-01-07"},
            lambda run: "2026-01-05" < run["created_at"] < "2026-01-07",
        ),
        ({"agent": "nobody"}, lambda run: False),
        ({"experiment": "exp_none"}, lambda run: False),
    ],
)
def test_filters_return_exactly_the_matching_runs(people: dict[str, httpx.Client], asked: Any, fits: Any) -> None:
    everything = pages(people["ann"], limit=500)
    assert len(everything) == 400
    assert pages(people["ann"], **asked) == [run for run in everything if fits(run)]


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("sort", ["-created_at", "created_at", "-score", "score"])
def test_each_order_continues_over_pages_and_runs_without_a_score_come_last(
    people: dict[str, httpx.Client], sort: str
) -> None:
    found = pages(people["ann"], sort=sort, limit=37)
    assert len({run["id"] for run in found}) == 400
    if "created_at" in sort:
        assert found == sorted(found, key=lambda run: (run["created_at"], run["id"]), reverse=sort[0] == "-")
        return
    scored = [run for run in found if run["score"] is not None]
    assert found[: len(scored)] == scored
    assert scored == sorted(scored, key=lambda run: (run["score"], run["id"]), reverse=sort[0] == "-")
    assert {run["score"] for run in found[len(scored) :]} == {None}


@pytest.mark.usefixtures("seeded")
def test_pages_stay_consistent_while_runs_are_added_and_deleted(
    local: LocalServer, people: dict[str, httpx.Client]
) -> None:
    before = [run["id"] for run in pages(people["ann"])]
    first = people["ann"].get("/v1/runs", params={"limit": 100}).json()
    newer = local.make_run(user="ann").id
    last = first["items"][-1]["id"]
    with local.service.database.writing() as session:  # the very run at which the page ended
        session.execute(delete(RunRow).where(RunRow.id == last))
    second = people["ann"].get("/v1/runs", params={"limit": 100, "cursor": first["next"]}).json()
    assert [run["id"] for run in second["items"]] == before[100:200]
    forget_rows(local, [newer])
    row = {**{key: value for key, value in first["items"][-1].items() if key in RunRow.__mapper__.column_attrs}}
    row |= {name: datetime.fromisoformat(row[name]) for name in ("created_at", "updated_at")}
    with local.service.database.writing() as session:
        project, owner = first["items"][-1]["project"], session.scalars(select(User.id).where(User.name == "ann")).one()
        session.execute(insert(RunRow), [{**row, "project_id": project, "user_id": owner, "request": {}}])
        session.execute(insert(RunLabel), [{"run_id": last, "name": "batch", "value": row["labels"]["batch"]}])


@pytest.mark.usefixtures("seeded")
def test_users_can_not_see_others_runs_but_admins_see_all(people: dict[str, httpx.Client]) -> None:
    ann, bob, admin = (pages(people[name], limit=500) for name in ("ann", "bob", "admin"))
    assert (len(ann), len(bob), len(admin)) == (400, 60, 460)
    assert {run["user"] for run in bob} == {"bob"}
    project = ann[0]["project"]
    assert pages(people["admin"], project=project, limit=500) == pages(people["admin"], project="ann", limit=500) == ann
    for asked in (project, "ann", "prj_nobody"):
        refused = people["bob"].get("/v1/runs", params={"project": asked})
        assert (refused.status_code, refused.json()["type"]) == (404, "urn:mleredux:problem:not-found")
    theirs, none = (people["bob"].get(f"/v1/runs/{run}") for run in (ann[0]["id"], "none"))
    assert theirs.status_code == none.status_code == 404
    assert theirs.json()["detail"].replace(ann[0]["id"], "X") == none.json()["detail"].replace("none", "X")


def test_a_run_s_directory_records_its_owner_for_plugins(local: LocalServer, people: dict[str, httpx.Client]) -> None:
    asked = {"task": "digits", "agent": "dummy", "sandbox": "docker"}
    runs = [people[name].post("/v1/runs", json=asked).json() for name in ("ann", "bob")]
    projects = [local.service.store.get(run["id"]).spec.project for run in runs]
    assert projects == [run["project"] for run in runs] and projects[0] != projects[1]


def test_a_run_is_created_shown_and_found_by_its_label(people: dict[str, httpx.Client]) -> None:
    asked = {"task": "digits", "agent": "dummy", "sandbox": "docker", "seed": 7, "labels": {"who": "ann:1"}}
    made = people["ann"].post("/v1/runs", json={**asked, "priority": 3})
    assert made.status_code == 201, made.text
    run = made.json()
    assert made.headers["Location"] == f"/v1/runs/{run['id']}"
    assert {name: run[name] for name in asked} == asked
    assert (run["status"], run["user"], "report" in run) == ("queued", "ann", False)
    assert people["ann"].get(made.headers["Location"]).json() == {**run, "report": None, "queue": None}
    assert [found["id"] for found in pages(people["ann"], label="who:ann:1")] == [run["id"]]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"labels": {"a:b": "c"}}, "labels"),
        ({"labels": {f"n{number}": "v" for number in range(33)}}, "labels"),
        ({"limits": {"cpus": -1}}, "cpus"),
        ({"limits": {"threads": 1}}, "threads"),
        ({"seed": 2**60}, "seed"),
        ({"priority": 101}, "priority"),
        ({"network": "everything"}, "network"),
        ({"unknown": 1}, "unknown"),
        ({"task": ""}, "task"),
        ({"agent": "a\nb"}, "agent"),
    ],
)
def test_errors_name_the_field(people: dict[str, httpx.Client], asked: Any, field: str) -> None:
    answered = people["ann"].post("/v1/runs", json={"task": "digits", "agent": "dummy", **asked})
    assert answered.status_code == 422
    assert field in json.dumps(answered.json()["errors"])


@pytest.mark.parametrize(
    "asked",
    [
        {"sort": "name"},
        {"status": "asleep"},
        {"label": "no-value"},
        {"created_after": "yesterday"},
        {"created_after": "0001-01-01T00:00:00+23:00"},
        {"cursor": "WzFd"},
        {"cursor": "WyItY3JlYXRlZF9hdCIsIngiLCJ5Il0"},
    ],
)
def test_malformed_filters_are_refused(people: dict[str, httpx.Client], asked: Any) -> None:
    answered = people["ann"].get("/v1/runs", params=asked)
    assert (answered.status_code, answered.json()["type"]) == (422, "urn:mleredux:problem:invalid"), answered.text


def test_a_cursor_of_another_order_is_refused(local: LocalServer, people: dict[str, httpx.Client]) -> None:
    ids = [local.make_run(user="bob").id for _ in range(2)]
    cursor = people["bob"].get("/v1/runs", params={"limit": 1}).json()["next"]
    assert people["bob"].get("/v1/runs", params={"cursor": cursor, "sort": "score"}).status_code == 422
    forget_rows(local, ids)


def asking(limit: int = 50, cursor: str | None = None) -> Paging:
    scope = {"type": "http", "path": "/v1/runs", "query_string": b"", "headers": [], "server": ("localhost", 80)}
    return Paging(Request(scope), Response(), limit, cursor)


def _took(local: LocalServer, caller: Caller, wanted: Wanted) -> float:
    """Seconds of CPU for the first page of a list."""
    took = []
    for _ in range(4):
        with local.service.database.reading() as session:
            began = time.process_time()
            runs_page(session, caller, wanted, asking())
            took.append(time.process_time() - began)
    return min(took)


def test_ten_thousand_runs_are_listed_by_an_index_and_fast(local: LocalServer) -> None:
    lists = (
        Wanted(),
        Wanted(sort="created_at"),
        Wanted(sort="-score"),
        Wanted(sort="score"),
        Wanted(task="wine"),
        Wanted(statuses=["failed"]),
        Wanted(medal="gold"),
        Wanted(cause="out_of_memory"),  # nothing matches: everything is read
        Wanted(labels=["batch:7"]),
        Wanted(task="digits", labels=["batch:7"], sort="-score"),
    )
    local.user("many")
    everybody = local.caller("admin")
    few = seed_rows(local, "many", 100, seed=3)
    of_few = max(_took(local, everybody, wanted) for wanted in lists)
    forget_rows(local, few)
    seed_rows(local, "many", 10_000, seed=2)
    for caller in (local.caller("many"), everybody):
        for wanted in lists:
            taken = _took(local, caller, wanted)
            assert taken < 3 * of_few + 0.01, (wanted, taken, of_few)
    with local.service.database.reading() as session:
        for caller in (local.caller("many"), everybody):
            for wanted in (Wanted(), Wanted(task="wine"), Wanted(statuses=["failed"])):
                query = shown_runs().where(*conditions(session, caller, wanted))
                query = query.order_by(RunRow.created_at.desc(), RunRow.id.desc()).limit(51)
                bind = session.get_bind()
                compiled = query.compile(bind, compile_kwargs={"literal_binds": True})
                plan = [row[3] for row in session.execute(text(f"EXPLAIN QUERY PLAN {compiled}"))]
                assert any("INDEX ix_runs_" in step for step in plan), plan
                assert not any("TEMP B-TREE" in step for step in plan), plan
