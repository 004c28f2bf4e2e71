"""Idempotency keys: however often a request is repeated, and whatever is killed in between, one resource is created."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from mleredux._core.store import Run
from mleredux_server.database.tables import Idempotency, Job, RunRow, now
from mleredux_server.scheduler.startup import recover
from mleredux_support.server_local import LocalServer
from sqlalchemy import func, select, update

RUN = {"task": "digits", "agent": "dummy", "sandbox": "docker"}


class Killed(BaseException):
    """Simulate `kill -9` at this point: nothing after it runs, not even `except` blocks."""


@pytest.fixture(scope="module")
def ann(local: LocalServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {local.user('ann')}"}, timeout=30) as http:
        yield http


def send(http: httpx.Client, key: str, **changes: Any) -> httpx.Response:
    return http.post("/v1/runs", json={**RUN, **changes}, headers={"Idempotency-Key": key})


def number_of_runs(local: LocalServer) -> int:
    with local.service.database.reading() as session:
        return session.scalar(select(func.count()).select_from(RunRow)) or 0


def kept(local: LocalServer, key: str) -> Idempotency | None:
    with local.service.database.reading() as session:
        return session.scalars(select(Idempotency).where(Idempotency.key == key)).one_or_none()


def test_a_repeat_gets_the_first_response_whatever_happened_to_the_run(local: LocalServer, ann: httpx.Client) -> None:
    before, first = number_of_runs(local), send(ann, "one")
    local.settle(first.json()["id"], "done")
    again = send(ann, "one")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert again.headers["Location"] == first.headers["Location"]
    assert again.headers["Content-Type"] == first.headers["Content-Type"]
    assert (again.headers["Idempotency-Replayed"], "Idempotency-Replayed" in first.headers) == ("true", False)
    assert number_of_runs(local) == before + 1


def test_the_same_key_for_another_request_is_refused(local: LocalServer, ann: httpx.Client) -> None:
    send(ann, "two")
    before = number_of_runs(local)
    for changes in ({"seed": 1}, {"labels": {"a": "b"}}, {"task": "wine"}):
        refused = send(ann, "two", **changes)
        assert (refused.status_code, refused.json()["type"]) == (422, "urn:mleredux:problem:idempotency-mismatch")
    elsewhere = ann.post(
        "/v1/experiments", json={"tasks": ["digits"], "agents": ["dummy"]}, headers={"Idempotency-Key": "two"}
    )
    assert elsewhere.json()["type"] == "urn:mleredux:problem:idempotency-mismatch"
    assert number_of_runs(local) == before


def test_keys_are_per_user(local: LocalServer, ann: httpx.Client) -> None:
    mine = send(ann, "shared").json()["id"]
    with httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {local.user('bob')}"}, timeout=60) as bob:
        theirs = send(bob, "shared")
    assert theirs.status_code == 201
    assert theirs.json()["id"] != mine


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\there", "é".encode()])
def test_invalid_keys_are_refused(ann: httpx.Client, key: str | bytes) -> None:
    answered = ann.post("/v1/runs", json=RUN, headers={"Idempotency-Key": key})
    assert (answered.status_code, answered.json()["type"]) == (422, "urn:mleredux:problem:invalid")


def test_without_a_key_each_request_creates_a_run(local: LocalServer, ann: httpx.Client) -> None:
    before = number_of_runs(local)
    assert len({ann.post("/v1/runs", json=RUN).json()["id"] for _ in range(2)}) == 2
    assert number_of_runs(local) == before + 2


def test_a_refused_request_may_be_repeated_under_its_key(local: LocalServer, ann: httpx.Client) -> None:
    assert send(ann, "three", agent="no-such-agent").status_code == 404
    assert kept(local, "three") is None
    assert send(ann, "three").status_code == 201


def test_concurrent_requests_create_one_run(local: LocalServer, ann: httpx.Client) -> None:
    before = number_of_runs(local)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: send(ann, "crowd"), range(16)))
    assert {answered.status_code for answered in answers} <= {201, 409}
    made = [answered for answered in answers if answered.status_code == 201]
    assert len({answered.content for answered in made}) == 1
    for refused in (answered for answered in answers if answered.status_code == 409):
        assert refused.json()["type"] == "urn:mleredux:problem:idempotency-conflict"
        assert refused.headers["Retry-After"]
    assert number_of_runs(local) == before + 1
    assert send(ann, "crowd").content == made[0].content


def test_while_the_first_is_in_progress_a_repeat_must_wait(
    local: LocalServer, ann: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_end, create = threading.Event(), threading.Event(), Run.create

    def slowly(path: Path, spec: Any) -> Run:
        began.set()
        may_end.wait(20)
        return create(path, spec)

    monkeypatch.setattr(Run, "create", slowly)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(send, ann, "slow")
        assert began.wait(20)
        second = send(ann, "slow")
        assert (second.status_code, second.json()["type"]) == (409, "urn:mleredux:problem:idempotency-conflict")
        other = send(ann, "slow", seed=9)
        assert other.json()["type"] == "urn:mleredux:problem:idempotency-mismatch"
        may_end.set()
        assert first.result().status_code == 201
    assert send(ann, "slow").content == first.result().content


@pytest.mark.parametrize("place", ["before the directory", "after the directory", "after the acknowledgement"])
def test_after_a_kill_anywhere_a_repeat_creates_no_second_run(
    local: LocalServer, ann: httpx.Client, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    before, create = number_of_runs(local), Run.create

    def kill(path: Path, spec: Any) -> Run:
        if place == "after the directory":
            create(path, spec)
        raise Killed

    if place == "after the acknowledgement":
        monkeypatch.setattr("mleredux_server.protocol.idempotency.Answer.response", lambda *_a, **_m: kill_now())
    else:
        monkeypatch.setattr(Run, "create", kill)

    def kill_now() -> None:
        raise Killed

    assert send(ann, place).status_code == 500
    monkeypatch.undo()
    recover(local.service)  # as the next start does
    answered = send(ann, place)
    assert answered.status_code == 201
    assert number_of_runs(local) == before + 1
    found = answered.json()["id"]
    with local.service.database.reading() as session:
        assert session.get_one(Job, found).state == "queued"
    assert (local.service.store.path / found / "run.json").is_file()
    assert send(ann, place).content == answered.content


def test_a_dead_first_request_expires(local: LocalServer, ann: httpx.Client) -> None:
    send(ann, "dead")
    with local.service.database.writing() as session:
        session.execute(update(Idempotency).where(Idempotency.key == "dead").values(status=None))
    assert send(ann, "dead").status_code == 409
    with local.service.database.writing() as session:
        old = now() - timedelta(minutes=16)
        session.execute(update(Idempotency).where(Idempotency.key == "dead").values(created_at=old))
    assert send(ann, "dead").status_code == 201


def test_old_responses_expire_but_not_before_a_day(local: LocalServer, ann: httpx.Client) -> None:
    for key, hours in (("old", 49), ("day", 25)):
        send(ann, key)
        with local.service.database.writing() as session:
            time = now() - timedelta(hours=hours)
            session.execute(update(Idempotency).where(Idempotency.key == key).values(created_at=time))
    assert send(ann, "newest").status_code == 201
    assert kept(local, "old") is None
    assert send(ann, "day").headers["Idempotency-Replayed"] == "true"


def test_users_and_projects_are_created_once_too(local: LocalServer) -> None:
    with httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {local.token}"}, timeout=60) as admin:
        for path, name in (("/v1/users", "zoe"), ("/v1/projects", "zoo")):
            key = {"Idempotency-Key": f"make {name}"}
            first, again = (admin.post(path, json={"name": name}, headers=key) for _ in range(2))
            assert (first.status_code, again.status_code) == (201, 201), first.text
            assert again.content == first.content
            assert admin.get(first.headers["Location"]).status_code == 200


def test_a_repeated_retry_creates_one_new_run(local: LocalServer, ann: httpx.Client) -> None:
    first = send(ann, "to be retried").json()["id"]
    with local.service.database.writing() as session:  # it ended well: only a new run can follow
        session.execute(update(Job).where(Job.id == first).values(state="ended"))
    shutil.rmtree(local.service.store.path / first)
    before, key = number_of_runs(local), {"Idempotency-Key": "once more"}
    answers = [ann.post(f"/v1/runs/{first}/retry", headers=key) for _ in range(3)]
    assert [answered.status_code for answered in answers] == [201] * 3
    assert {answered.json()["id"] for answered in answers} == {answers[0].json()["id"]}
    assert answers[0].json()["retry_of"] == first
    assert number_of_runs(local) == before + 1
