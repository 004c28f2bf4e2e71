"""Quotas: what a project may use, checked when runs are created; concurrent requests can't exceed them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import httpx
import pytest
from mleredux_server.accounts.accounts import TRUSTED, set_quota
from mleredux_server.database.tables import Job, Project
from mleredux_server.schemas.accounts import Quota
from mleredux_support.server_local import LocalServer
from sqlalchemy import select, update

NUMBERS = count()
RUN = {"task": "digits", "agent": "dummy"}


class Member:
    """A user with their own project."""

    def __init__(self, local: LocalServer, name: str) -> None:
        self.local, self.name = local, name
        self.http = httpx.Client(
            base_url=local.url, headers={"Authorization": f"Bearer {local.user(name)}"}, timeout=60
        )

    def quota(self, **change: Any) -> None:
        """`Quota()` with these fields changed."""
        with self.local.service.database.writing() as session:
            project = session.scalars(select(Project).where(Project.name == self.name)).one()
            project.quota = Quota().model_dump(mode="json")
            set_quota(project, Quota(**change))

    def usage(self) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get("/v1/me").json()["projects"][0]["usage"]
        return found

    def run(self, status: int = 201, **asked: Any) -> dict[str, Any]:
        answered = self.http.post("/v1/runs", json={**RUN, **asked})
        assert answered.status_code == status, answered.text
        if status == 403:
            assert answered.json()["type"] == "urn:mleredux:problem:quota-exceeded"
            assert answered.json()["hint"]
        made: dict[str, Any] = answered.json()
        return made


@pytest.fixture
def ann(local: LocalServer) -> Iterator[Member]:
    """A new user for each test."""
    member = Member(local, f"ann{next(NUMBERS)}")
    yield member
    member.http.close()


def test_runs_that_wait_are_counted(ann: Member) -> None:
    ann.quota(queued_runs=2)
    first = ann.run()
    ann.run()
    refused = ann.run(403)
    assert "2 queued runs" in refused["detail"]
    with ann.local.service.database.writing() as session:
        session.execute(update(Job).where(Job.id == first["id"]).values(state="started"))
    ann.run()
    assert (ann.usage()["queued_runs"], ann.usage()["running_runs"]) == (2, 1)


@pytest.mark.parametrize(
    ("quota", "asked", "words"),
    [
        ({"cpus": 1}, {"limits": {"cpus": 2}}, "1 cpus; the run requests 2"),
        ({"memory_mb": 500}, {"limits": {"memory_mb": 512}}, "500 memory_mb; the run requests 512"),
        ({"gpus": 0}, {"limits": {"gpus": 0}}, None),
        ({"max_time_limit": 60}, {"limits": {"time_limit": 61}}, "60 s per run; the run requests 61"),
        ({"max_time_limit": 60}, {"limits": {"time_limit": 60}}, None),
        ({"disk_mb": 100}, {"limits": {"disk_mb": 101}}, "100 MB of disk"),
        ({"disk_mb": 100}, {"limits": {"disk_mb": 100}}, None),
        ({"sandboxes": []}, {}, "no sandbox"),
        ({"sandboxes": ["docker"]}, {"sandbox": "process"}, "only sandbox docker; process"),
        ({"sandboxes": None}, {"sandbox": "process"}, None),
        ({"sandboxes": ["isolated"]}, {"sandbox": "process"}, "only isolated sandboxes; process"),
        ({"sandboxes": ["isolated"]}, {"sandbox": "docker"}, None),
        ({"sandboxes": ["isolated", "process"]}, {"sandbox": "process"}, None),
        ({"networks": ["none"]}, {"network": "open"}, "only network none; open"),
        ({"networks": []}, {}, "no network"),
        ({"memory_mb": 32}, {}, "32 memory_mb"),
        ({"cpus": 0}, {}, "0 cpus"),
    ],
)
def test_what_one_run_may_request(ann: Member, quota: dict[str, Any], asked: dict[str, Any], words: str | None) -> None:
    ann.quota(**quota)
    answered = ann.run(201 if words is None else 403, **asked)
    assert words is None or words in answered["detail"]


def test_defaults_are_fitted_to_the_quota(ann: Member) -> None:
    ann.quota(cpus=0.5, memory_mb=256, max_time_limit=30, sandboxes=["docker"])
    made = ann.run()  # the agent would rather run in the process sandbox, longer and with more
    assert made["sandbox"] == "docker"
    assert (made["limits"]["cpus"], made["limits"]["memory_mb"], made["limits"]["time_limit"]) == (0.5, 256, 30)
    ann.quota(sandboxes=None)
    assert ann.run()["sandbox"] == "process"


def test_disk_counts_ended_runs_and_reservations_of_others(ann: Member) -> None:
    ann.quota(disk_mb=1000)
    first = ann.run(limits={"disk_mb": 900})["id"]
    assert ann.usage()["disk_mb"] == 900
    ann.run(403, limits={"disk_mb": 200})
    with ann.local.service.database.writing() as session:  # it ended, with few files
        session.execute(update(Job).where(Job.id == first).values(state="ended", disk_mb=10))
    assert ann.usage()["disk_mb"] == 10
    ann.run(limits={"disk_mb": 200})


def test_tokens_of_language_models_are_reserved_once_within_the_quota(ann: Member) -> None:
    ann.quota(llm_tokens=1000)
    agent = {"agent": "mini-swe-agent", "network": "gateway"}
    first = ann.run(**agent, limits={"llm_tokens": 300})
    assert (first["limits"]["llm_tokens"], ann.usage()["llm_tokens"]) == (300, 300)
    ann.run(403, **agent, limits={"llm_tokens": 701})
    assert ann.run(**agent, limits={"llm_tokens": 0})["limits"]["llm_tokens"] == 0
    rest = ann.run(**agent)
    assert (rest["limits"]["llm_tokens"], ann.usage()["llm_tokens"]) == (700, 1000)
    assert "0 are left" in ann.run(403, **agent)["detail"]
    ann.run()  # without a gateway
    with ann.local.service.database.writing() as session:  # it ended, having used 50
        session.execute(update(Job).where(Job.id == first["id"]).values(state="ended"))
        session.execute(update(Project).where(Project.name == ann.name).values(llm_tokens_used=50))
    assert ann.usage()["llm_tokens"] == 750
    assert ann.run(**agent)["limits"]["llm_tokens"] == 250


def test_runs_of_a_matrix_share_the_remaining_tokens(ann: Member) -> None:
    ann.quota(llm_tokens=100)
    asked = {"tasks": ["digits"], "agents": ["mini-swe-agent"], "network": "gateway"}
    made = ann.http.post("/v1/experiments", json={**asked, "seeds": [1, 2, 3]}).json()
    assert sorted(run["limits"]["llm_tokens"] for run in made["runs"]) == [33, 33, 34]
    assert ann.usage()["llm_tokens"] == 100
    ann.quota(llm_tokens=102)
    refused = ann.http.post("/v1/experiments", json={**asked, "seeds": [1, 2, 3]})
    assert refused.json()["type"] == "urn:mleredux:problem:quota-exceeded"


def test_concurrent_requests_can_not_exceed_a_quota(ann: Member) -> None:
    ann.quota(queued_runs=5, disk_mb=70)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ann.http.post, "/v1/runs", json={**RUN, "limits": {"disk_mb": 10}}) for _ in range(16)]
    statuses = [one.result().status_code for one in asked]
    assert (statuses.count(201), statuses.count(403)) == (5, 11)
    assert (ann.usage()["queued_runs"], ann.usage()["disk_mb"]) == (5, 50)


def test_admins_projects_have_few_limits_and_others_are_restricted_to_containers() -> None:
    assert (TRUSTED.sandboxes, TRUSTED.queued_runs) == (None, None)
    assert (Quota().sandboxes, Quota().networks) == (["isolated"], ["none", "gateway"])


def test_a_project_can_not_use_another_s_quota(local: LocalServer, ann: Member) -> None:
    bob = Member(local, f"bob-of-{ann.name}")
    ann.quota(queued_runs=0)
    bob.run()
    ann.run(403)
    refused = ann.http.post("/v1/runs", json={**RUN, "project": bob.name})
    assert refused.status_code == 404
    bob.http.close()
