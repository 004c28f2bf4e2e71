"""The same guarantees on PostgreSQL, where writers are not serialized: quotas, keys, lists, odd characters."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from mleredux_server.accounts.accounts import set_quota
from mleredux_server.database.tables import Project, RunRow, now
from mleredux_server.schemas.accounts import Quota
from mleredux_support.postgresql import PostgresServer
from mleredux_support.server_local import LocalServer
from sqlalchemy import func, select, update

RUN = {"task": "digits", "agent": "dummy"}


@pytest.fixture(scope="module")
def local(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    place = Path(tmp_path_factory.mktemp("local")) / "runs"
    with LocalServer(place, database=postgres_server.new_database()).running() as started:
        yield started


def member(local: LocalServer, name: str) -> httpx.Client:
    token = local.user(name, scopes=["read", "run", "tokens"])
    return httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)


def number_of_runs(local: LocalServer, user: str) -> int:
    with local.service.database.reading() as session:
        query = select(func.count()).select_from(RunRow).join(Project, Project.id == RunRow.project_id)
        return session.scalar(query.where(Project.name == user)) or 0


def test_concurrent_requests_can_not_exceed_a_quota(local: LocalServer) -> None:
    with member(local, "ann") as ann, ThreadPoolExecutor(8) as pool:
        with local.service.database.writing() as session:
            project = session.scalars(select(Project).where(Project.name == "ann")).one()
            set_quota(project, Quota(queued_runs=5))
        asked = [pool.submit(ann.post, "/v1/runs", json=RUN) for _ in range(16)]
        statuses = [one.result().status_code for one in asked]
    assert (statuses.count(201), statuses.count(403)) == (5, 11)
    assert number_of_runs(local, "ann") == 5


def test_concurrent_submissions_can_not_exceed_a_quota_and_are_listed_page_by_page(local: LocalServer) -> None:
    headers = {"Authorization": f"Bearer {local.user('gil')}"}
    with httpx.Client(base_url=local.url, headers=headers, timeout=60) as gil, ThreadPoolExecutor(8) as pool:
        with local.service.database.writing() as session:
            project = session.scalars(select(Project).where(Project.name == "gil")).one()
            set_quota(project, Quota(disk_mb=3))
        form: dict[str, Any] = {"data": {"task": "digits"}, "files": {"file": b"id,digit\n"}}  # counts as one MB
        asked = [pool.submit(gil.post, "/v1/submissions", **form) for _ in range(12)]
        answers = [one.result() for one in asked]
        pages, cursor = [], ""
        while cursor is not None:
            page = gil.get("/v1/submissions", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
            pages.append([item["id"] for item in page["items"]])
            cursor = page["next"]
    statuses = [answer.status_code for answer in answers]
    assert (statuses.count(202), statuses.count(403)) == (3, 9)
    assert [len(page) for page in pages] == [2, 1]
    assert {one for page in pages for one in page} == {
        answer.json()["id"] for answer in answers if answer.status_code == 202
    }


def test_concurrent_requests_with_one_key_create_one_run(local: LocalServer) -> None:
    with member(local, "bob") as bob, ThreadPoolExecutor(8) as pool:
        key = {"Idempotency-Key": "crowd"}
        asked = [pool.submit(bob.post, "/v1/runs", json=RUN, headers=key) for _ in range(16)]
        answers = [one.result() for one in asked]
        again = bob.post("/v1/runs", json=RUN, headers=key)
    assert {answered.status_code for answered in answers} <= {201, 409}
    assert {answered.content for answered in answers if answered.status_code == 201} == {again.content}
    assert number_of_runs(local, "bob") == 1


def test_concurrent_requests_can_not_reuse_a_name(local: LocalServer) -> None:
    bearer = {"Authorization": f"Bearer {local.token}"}
    with httpx.Client(base_url=local.url, headers=bearer, timeout=60) as admin, ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(admin.post, "/v1/users", json={"name": "crowd"}) for _ in range(6)]
        statuses = [one.result().status_code for one in asked]
    assert (statuses.count(201), statuses.count(409)) == (1, 5)


def pages(http: httpx.Client, **asked: Any) -> list[dict[str, Any]]:
    items, url = [], str(httpx.URL("/v1/runs", params={"limit": 4, **asked}))
    while url:
        answered = http.get(url)
        assert answered.status_code == 200, answered.text
        items += answered.json()["items"]
        url = answered.links["next"]["url"] if "next" in answered.links else ""
    return items


def test_filters_orders_and_pages_are_the_same_as_on_sqlite(local: LocalServer) -> None:
    with member(local, "carl") as carl:
        matrix = {"tasks": ["digits", "wine"], "agents": ["dummy"], "seeds": [0, 1, 2, 3, 4], "labels": {"a": "b:c"}}
        made = carl.post("/v1/experiments", json=matrix).json()["runs"]
        with local.service.database.writing() as session:
            for number, run in enumerate(made):
                values = {"score": number % 3 / 10 or None, "created_at": now() - timedelta(minutes=number % 4)}
                session.execute(update(RunRow).where(RunRow.id == run["id"]).values(**values))
        for sort in ("-created_at", "created_at", "-score", "score"):
            found = pages(carl, sort=sort, label="a:b:c")
            assert len({run["id"] for run in found}) == len(made)
            backward, field = sort.startswith("-"), sort.removeprefix("-")
            known = [run for run in found if run[field] is not None]
            assert (
                found[: len(known)] == known == sorted(known, key=lambda run: (run[field], run["id"]), reverse=backward)
            )
        assert {run["task"] for run in pages(carl, task="wine", status=["queued", "failed"])} == {"wine"}
        assert pages(carl, label="a:b") == pages(carl, created_before="2020-01-01") == []
        with member(local, "dora") as dora:
            assert pages(dora) == []


@pytest.mark.parametrize(
    "body",
    [
        '{"task": "digits", "agent": "dummy", "context": "a\\u0000b"}',
        '{"task": "digits", "agent": "dummy", "options": {"a": "\\ud800"}}',
        '{"task": "digits", "agent": "dummy", "labels": {"a": "\\u0000"}}',
        '{"task": "a\\u0000b", "agent": "dummy"}',
        '{"task": "digits", "agent": "dummy", "project": "\\u0000"}',
    ],
)
def test_what_it_cannot_store_is_refused(local: LocalServer, body: str) -> None:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {local.token}"}
    answered = httpx.post(f"{local.url}/v1/runs", content=body, headers=headers)
    assert (answered.status_code, answered.json()["type"]) == (422, "urn:mleredux:problem:invalid")


def test_a_text_refused_by_the_database_is_a_clear_error_too(local: LocalServer) -> None:
    form = {"task": "digits", "project": "a\0b"}
    headers = {"Authorization": f"Bearer {local.token}"}
    answered = httpx.post(f"{local.url}/v1/submissions", data=form, files={"file": b"id,digit\n"}, headers=headers)
    assert (answered.status_code, answered.json()["type"]) == (422, "urn:mleredux:problem:invalid"), answered.text
