"""Projects: members see their contents, owners manage members, admins set quotas."""

from __future__ import annotations

from itertools import count
from typing import Any

import httpx
import pytest
from mleredux_server.database.tables import Audit
from mleredux_support.server_local import LocalServer
from sqlalchemy import select

NUMBERS = count()


@pytest.fixture(scope="module")
def people(local: LocalServer) -> dict[str, httpx.Client]:
    tokens = {name: local.user(name, scopes=["read", "run", "tokens"]) for name in ("ann", "bob", "carl")}
    return {
        name: httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {token}"}, timeout=30)
        for name, token in {**tokens, "admin": local.token}.items()
    }


def id_of(http: httpx.Client) -> str:
    return str(http.get("/v1/me").json()["user"]["id"])


@pytest.fixture
def team(people: dict[str, httpx.Client]) -> dict[str, Any]:
    """A project owned by ann, with bob as a member."""
    name = f"team-{next(NUMBERS)}"
    project: dict[str, Any] = people["admin"].post("/v1/projects", json={"name": name}).json()
    members = f"/v1/projects/{project['id']}/members"
    people["admin"].put(f"{members}/{id_of(people['ann'])}", json={"role": "owner"})
    people["ann"].put(f"{members}/{id_of(people['bob'])}", json={})
    people["admin"].delete(f"{members}/{id_of(people['admin'])}")
    return project


def test_members_see_the_project_and_its_runs_and_others_do_not(
    people: dict[str, httpx.Client], team: dict[str, Any]
) -> None:
    made = people["bob"].post("/v1/runs", json={"task": "digits", "agent": "dummy", "project": team["name"]}).json()
    assert (made["project"], made["sandbox"]) == (team["id"], "docker")
    for name, role in (("ann", "owner"), ("bob", "member"), ("admin", None)):
        shown = people[name].get(f"/v1/projects/{team['id']}").json()
        assert (shown["name"], shown["role"], shown["usage"]["queued_runs"]) == (team["name"], role, 1)
        assert people[name].get(f"/v1/runs/{made['id']}").json()["user"] == "bob"
    for path in (f"/v1/projects/{team['id']}", f"/v1/projects/{team['name']}", f"/v1/runs/{made['id']}"):
        assert people["carl"].get(path).status_code == 404
    assert team["id"] not in [project["id"] for project in people["carl"].get("/v1/projects").json()["items"]]
    refused = people["carl"].post("/v1/runs", json={"task": "digits", "agent": "dummy", "project": team["id"]})
    assert refused.status_code == 404


def test_owners_add_and_remove_members_and_members_only_remove_themselves(
    people: dict[str, httpx.Client], team: dict[str, Any]
) -> None:
    members = f"/v1/projects/{team['id']}/members"
    carl, bob, ann = (id_of(people[name]) for name in ("carl", "bob", "ann"))
    assert people["bob"].put(f"{members}/{carl}", json={}).status_code == 403
    assert people["bob"].delete(f"{members}/{ann}").status_code == 403
    assert people["carl"].put(f"{members}/{carl}", json={}).status_code == 404
    assert people["carl"].get(f"/v1/projects/{team['id']}").status_code == 404
    assert people["ann"].put(f"{members}/{carl}", json={"role": "member"}).status_code == 204
    assert people["carl"].get(f"/v1/projects/{team['id']}").json()["role"] == "member"  # immediately
    assert people["ann"].put(f"{members}/{carl}", json={"role": "king"}).status_code == 422
    assert people["ann"].put(f"{members}/carl", json={}).status_code == 404  # else names could be guessed
    assert people["ann"].delete(f"{members}/{carl}").status_code == 204
    assert people["carl"].get(f"/v1/projects/{team['id']}").status_code == 404
    assert people["bob"].delete(f"{members}/{bob}").status_code == 204
    assert people["bob"].get(f"/v1/projects/{team['id']}").status_code == 404


def test_a_project_keeps_an_owner(people: dict[str, httpx.Client], team: dict[str, Any]) -> None:
    members = f"/v1/projects/{team['id']}/members"
    ann, bob = id_of(people["ann"]), id_of(people["bob"])
    assert people["ann"].delete(f"{members}/{ann}").status_code == 409
    assert people["ann"].put(f"{members}/{ann}", json={"role": "member"}).status_code == 409
    assert people["ann"].put(f"{members}/{bob}", json={"role": "owner"}).status_code == 204
    assert people["ann"].delete(f"{members}/{ann}").status_code == 204


def test_only_admins_create_projects_and_change_quotas(people: dict[str, httpx.Client], team: dict[str, Any]) -> None:
    path = f"/v1/projects/{team['id']}"
    assert people["ann"].post("/v1/projects", json={"name": "more"}).status_code == 403
    for change in ({"quota": {"cpus": None}}, {"name": "free", "quota": {"sandboxes": None}}):
        refused = people["ann"].patch(path, json=change)
        assert (refused.status_code, refused.json()["type"]) == (403, "urn:mleredux:problem:forbidden")
    assert people["admin"].get(path).json()["name"] == team["name"]
    changed = people["admin"].patch(path, json={"quota": {"cpus": 2.5, "queued_runs": None}}).json()["quota"]
    assert changed == {**team["quota"], "cpus": 2.5, "queued_runs": None}
    assert people["admin"].patch(path, json={"quota": {"cpus": None}}).json()["quota"]["cpus"] is None
    for wrong in (
        {"cpus": -1},
        {"cpu": 1},
        {"networks": None},
        {"networks": ["all"]},
        {"weight": 0},
        {"memory_mb": 1e300},
    ):
        assert people["admin"].patch(path, json={"quota": wrong}).status_code == 422, wrong


def test_an_invalid_quota_is_refused(people: dict[str, httpx.Client], team: dict[str, Any]) -> None:
    for value in ("NaN", "Infinity", "1e999"):
        answered = people["admin"].patch(
            f"/v1/projects/{team['id']}",
            content=f'{{"quota": {{"cpus": {value}}}}}',
            headers={"Content-Type": "application/json"},
        )
        assert answered.status_code == 422, value


def test_only_owners_rename_and_names_stay_unique(people: dict[str, httpx.Client], team: dict[str, Any]) -> None:
    path = f"/v1/projects/{team['id']}"
    assert people["bob"].patch(path, json={"name": "mine"}).status_code == 403
    assert people["ann"].patch(path, json={"name": "carl"}).status_code == 409
    assert people["ann"].patch(path, json={"name": team["id"]}).status_code == 422
    assert people["ann"].patch(path, json={"name": f"{team['name']}-x"}).json()["name"] == f"{team['name']}-x"
    assert people["ann"].get(f"/v1/projects/{team['name']}-x").json()["id"] == team["id"]


def test_a_project_change_based_on_a_stale_state_is_refused(
    people: dict[str, httpx.Client], team: dict[str, Any]
) -> None:
    path = f"/v1/projects/{team['id']}"
    seen = people["admin"].get(path).headers["ETag"]
    first = people["admin"].patch(path, json={"quota": {"cpus": 4}}, headers={"If-Match": seen})
    assert first.status_code == 200, first.text
    late = people["admin"].patch(path, json={"quota": {"cpus": 64}}, headers={"If-Match": seen})
    assert (late.status_code, late.json()["type"]) == (412, "urn:mleredux:problem:precondition-failed")
    assert people["admin"].get(path).json()["quota"]["cpus"] == 4
    assert people["admin"].patch(path, json={"quota": {"cpus": 8}}, headers={"If-Match": "*"}).status_code == 200


def test_each_change_is_in_the_audit_log(
    local: LocalServer, people: dict[str, httpx.Client], team: dict[str, Any]
) -> None:
    people["ann"].patch(f"/v1/projects/{team['id']}", json={"name": f"{team['name']}-y"})
    people["admin"].patch(f"/v1/projects/{team['id']}", json={"quota": {"gpus": 1}})
    with local.service.database.reading() as session:
        rows = session.scalars(select(Audit).where(Audit.target.startswith(team["id"])).order_by(Audit.id)).all()
    ann, bob, admin = (id_of(people[name]) for name in ("ann", "bob", "admin"))
    assert [(row.action, row.user_id) for row in rows] == [
        ("project.create", admin),
        ("member.put", admin),
        ("member.put", ann),
        ("member.delete", admin),
        ("project.rename", ann),
        ("project.quota", admin),
    ]
    assert rows[2].target == f"{team['id']} {bob} member"
    assert rows[5].target == f'{team["id"]} {{"gpus":1}}'
