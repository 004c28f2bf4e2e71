"""Users and their removal, and `mleredux server`, which accesses the database directly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux.errors import MlereduxError
from mleredux_server.database.tables import Audit
from mleredux_support.server_local import LocalServer
from sqlalchemy import select


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """The server is in this process: its log must not mix with the output of the command line."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.reset_defaults()


def client(local: LocalServer, token: str) -> httpx.Client:
    return httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {token}"}, timeout=30)


@pytest.fixture(scope="module")
def admin(local: LocalServer) -> httpx.Client:
    return client(local, local.token)


def on(runs_dir: Path, *arguments: str) -> Any:
    """Return the output of `mleredux server … --json`."""
    command = ["server", *arguments, "--runs-dir", str(runs_dir), "--json"]
    answered = CliRunner().invoke(root, command, catch_exceptions=False)
    assert answered.exit_code == 0, answered.output
    return json.loads(answered.stdout)


def refused(runs_dir: Path, *arguments: str) -> str:
    """Return the sentence of an error."""
    with pytest.raises(MlereduxError) as caught:
        on(runs_dir, *arguments)
    return str(caught.value)


def test_a_user_is_created_with_their_own_project(local: LocalServer, admin: httpx.Client) -> None:
    made = admin.post("/v1/users", json={"name": "dora"})
    assert made.status_code == 201, made.text
    user = made.json()
    assert (user["name"], user["admin"], user["disabled_at"]) == ("dora", False, None)
    assert admin.get(made.headers["Location"]).json() == admin.get("/v1/users/dora").json() == user
    token = admin.post("/v1/tokens", json={"name": "t", "scopes": ["read"], "user": user["id"]}).json()["token"]
    with client(local, token) as dora:
        me = dora.get("/v1/me").json()
        assert [project["name"] for project in me["projects"]] == ["dora"]
        assert me["projects"][0]["quota"]["sandboxes"] == ["isolated"]
        assert dora.get(f"/v1/users/{user['id']}").json() == user
        assert dora.get("/v1/users/admin").status_code == 404
        assert dora.get("/v1/users").status_code == 403


@pytest.mark.parametrize(
    "name", ["", "Dora", "-dora", "d" * 64, "do ra", "dora\n", "usr_dora", "prj_dora", "dör", "../etc", "a\0b"]
)
def test_invalid_names_are_refused(admin: httpx.Client, name: str) -> None:
    for path in ("/v1/users", "/v1/projects"):
        answered = admin.post(path, json={"name": name})
        field = "body" if "\0" in name else "name"
        assert (answered.status_code, answered.json()["errors"][0]["field"]) == (422, field)


def test_names_are_unique_and_a_used_project_name_does_not_block_a_user(admin: httpx.Client) -> None:
    admin.post("/v1/projects", json={"name": "emil"})
    assert admin.post("/v1/users", json={"name": "emil"}).status_code == 201
    assert admin.post("/v1/users", json={"name": "emil"}).status_code == 409
    assert admin.post("/v1/projects", json={"name": "emil"}).status_code == 409
    assert "emil-2" in [project["name"] for project in admin.get("/v1/projects").json()["items"]]


def test_a_disabled_user_has_no_access_and_their_runs_remain(local: LocalServer, admin: httpx.Client) -> None:
    token = local.user("fred")
    run = local.make_run(user="fred").id
    with client(local, token) as fred:
        assert fred.get(f"/v1/runs/{run}").status_code == 200
        assert admin.delete("/v1/users/fred").status_code == 204
        assert fred.get(f"/v1/runs/{run}").status_code == 401
    assert admin.get(f"/v1/runs/{run}").json()["user"] == "fred"
    assert admin.get("/v1/users/fred").json()["disabled_at"] is not None
    assert admin.delete("/v1/users/fred").status_code == 409
    assert admin.post("/v1/tokens", json={"name": "t", "scopes": ["read"], "user": "fred"}).status_code == 409
    assert admin.delete("/v1/users/nobody").status_code == 404
    assert admin.post("/v1/users/fred/enable").json()["disabled_at"] is None
    assert admin.delete("/v1/users/fred").status_code == 204
    assert on(local.service.settings.runs_dir, "user", "enable", "fred")["disabled_at"] is None


def test_the_last_admin_can_not_be_disabled(local: LocalServer, admin: httpx.Client) -> None:
    last = admin.delete("/v1/users/admin")
    assert (last.status_code, last.json()["type"]) == (409, "urn:mleredux:problem:conflict")
    assert "last admin" in refused(local.service.settings.runs_dir, "user", "disable", "admin")
    admin.post("/v1/users", json={"name": "second", "admin": True})
    second = admin.post("/v1/tokens", json={"name": "t", "scopes": ["admin"], "user": "second"}).json()["token"]
    with client(local, second) as http:
        assert http.delete("/v1/users/second").status_code == 204
    assert admin.get("/v1/users").status_code == 200


def test_a_change_based_on_a_stale_state_is_refused(admin: httpx.Client) -> None:
    admin.post("/v1/users", json={"name": "gina"})
    stale = admin.delete("/v1/users/gina", headers={"If-Match": '"other"'})
    assert (stale.status_code, stale.json()["type"]) == (412, "urn:mleredux:problem:precondition-failed")
    current = admin.get("/v1/users/gina").headers["ETag"]
    assert admin.delete("/v1/users/gina", headers={"If-Match": current}).status_code == 204


def test_a_lost_token_can_be_replaced_while_the_server_runs(local: LocalServer) -> None:
    runs_dir = local.service.settings.runs_dir
    created = on(runs_dir, "token", "create", "--user", "admin", "--name", "found again", "--expires-in", "1h")
    assert (created["scopes"], created["user"]) == (["admin"], "admin")
    with client(local, created["token"]) as http:
        assert http.get("/v1/me").json()["token"]["name"] == "found again"
    assert created["id"] in [token["id"] for token in on(runs_dir, "token", "list", "--user", "admin")]
    assert on(runs_dir, "token", "revoke", created["id"]) == {"id": created["id"], "revoked": True}
    assert "not found" in refused(runs_dir, "token", "revoke", created["id"])
    local.app.state.tokens.forget()  # five seconds later
    with client(local, created["token"]) as http:
        assert http.get("/v1/me").status_code == 401


def test_users_and_projects_are_administered_without_the_server(tmp_path: Path) -> None:
    assert "serve" in refused(tmp_path, "user", "list")
    assert not (tmp_path / ".server").exists()
    assert on(tmp_path, "migrate")["revision"]
    assert on(tmp_path, "user", "create", "ann", "--admin")["admin"] is True
    on(tmp_path, "user", "create", "bob")
    assert [user["name"] for user in on(tmp_path, "user", "list")] == ["ann", "bob"]
    on(tmp_path, "project", "create", "team", "--owner", "bob")
    changed = on(tmp_path, "project", "quota", "team", "cpus=4", "sandboxes=docker,process", "queued_runs=none")
    assert {"cpus": 4.0, "sandboxes": ["docker", "process"], "queued_runs": None}.items() <= changed["quota"].items()
    shown = on(tmp_path, "project", "show", "team")
    assert (shown["members"], shown["quota"]) == ({"bob": "owner"}, changed["quota"])
    assert [project["name"] for project in on(tmp_path, "project", "list")] == ["ann", "bob", "team"]
    token = on(tmp_path, "token", "create", "--user", "bob", "--project", "team", "--scope", "read")
    assert (token["project"], token["scopes"]) == (shown["id"], ["read"])
    assert on(tmp_path, "user", "disable", "bob")["disabled_at"]
    assert on(tmp_path, "token", "list") == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("user", "create", "Ann"), "name:"),
        (("user", "create", "admin"), "already"),
        (("token", "create", "--user", "nobody"), "User 'nobody' not found"),
        (("token", "create", "--user", "hans", "--scope", "admin"), "admins"),
        (("token", "create", "--user", "hans", "--project", "admin"), "is not a member of project"),
        (("project", "quota", "hans", "cpus"), "FIELD=VALUE"),
        (("project", "quota", "hans", "cpu=3"), "cpu:"),
        (("project", "quota", "hans", "cpus=-3"), "cpus:"),
        (("project", "show", "nothing"), "Project 'nothing' not found"),
    ],
)
def test_command_line_errors_are_one_sentence(
    local: LocalServer, admin: httpx.Client, arguments: tuple[str, ...], words: str
) -> None:
    admin.post("/v1/users", json={"name": "hans"})
    assert words in refused(local.service.settings.runs_dir, *arguments)


def test_changes_from_the_command_line_are_in_the_audit_log(tmp_path: Path) -> None:
    from mleredux_server.database import Database

    on(tmp_path, "migrate")
    user = on(tmp_path, "user", "create", "ann", "--admin")
    database = Database(f"sqlite:///{tmp_path}/.server/service.sqlite")
    with database.reading() as session:
        row = session.scalars(select(Audit)).one()
    database.close()
    assert (row.action, row.target, row.user_id) == ("user.create", user["id"], None)
