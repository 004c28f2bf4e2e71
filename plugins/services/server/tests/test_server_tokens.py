"""Tokens: returned once, hashed, never with more permissions than their creator, revoked immediately."""

from __future__ import annotations

import sqlite3
import time
from datetime import datetime
from typing import Any

import httpx
import pytest
from mleredux_server.accounts.identity import hash_of
from mleredux_server.accounts.security import Caller, Tokens
from mleredux_server.database import engine
from mleredux_server.database.tables import Audit, Idempotency, Token, now
from mleredux_support.server_local import LocalServer
from sqlalchemy import select, text, update


def client(local: LocalServer, token: str) -> httpx.Client:
    return httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {token}"}, timeout=30)


@pytest.fixture(scope="module")
def admin(local: LocalServer) -> httpx.Client:
    return client(local, local.token)


@pytest.fixture(scope="module")
def ann(local: LocalServer) -> httpx.Client:
    return client(local, local.user("ann", scopes=["read", "run", "tokens"]))


def make(http: httpx.Client, status: int = 201, **asked: Any) -> dict[str, Any]:
    answered = http.post("/v1/tokens", json={"name": "t", "scopes": ["read"], **asked})
    assert answered.status_code == status, answered.text
    made: dict[str, Any] = answered.json()
    return made


def of_id(http: httpx.Client, token_id: str) -> dict[str, Any]:
    """Return a token as the list shows it."""
    items = http.get("/v1/tokens", params={"limit": 500}).json()["items"]
    return next(token for token in items if token["id"] == token_id)


def test_a_token_works_is_returned_once_and_only_its_hash_is_stored(local: LocalServer, ann: httpx.Client) -> None:
    made = make(ann, name="for the notebook", scopes=["read", "run"])
    assert made["token"].startswith("mlr_")
    assert len(made["token"]) > 40
    with client(local, made["token"]) as http:
        assert http.get("/v1/me").json()["token"]["name"] == "for the notebook"
    deadline = time.monotonic() + 60
    while (listed := of_id(ann, made["id"]))["last_used_at"] is None:
        assert time.monotonic() < deadline, listed
        time.sleep(0.02)
    assert {**listed, "last_used_at": None, "token": made["token"]} == made
    path = local.service.settings.state_dir / "service.sqlite"
    with sqlite3.connect(path) as database:
        dump = "\n".join(database.iterdump())
    assert hash_of(made["token"]) in dump
    assert made["token"] not in dump


@pytest.mark.parametrize("scopes", [["grade"], ["read", "admin"], ["admin"]])
def test_a_token_can_not_grant_scopes_it_lacks(ann: httpx.Client, scopes: list[str]) -> None:
    refused = make(ann, 403, scopes=scopes)
    assert refused["type"] == "urn:mleredux:problem:forbidden"


@pytest.mark.parametrize(
    "asked", [{"scopes": []}, {"scopes": ["root"]}, {"expires_in": -1}, {"expires_in": 1e12}, {"name": ""}]
)
def test_malformed_requests_are_refused(ann: httpx.Client, asked: dict[str, Any]) -> None:
    make(ann, 422, **asked)


def test_a_token_without_the_scope_is_refused_with_its_name(local: LocalServer, ann: httpx.Client) -> None:
    with client(local, make(ann, scopes=["read"])["token"]) as reader:
        for method, path in (
            ("POST", "/v1/tokens"),
            ("POST", "/v1/runs"),
            ("GET", "/v1/users"),
            ("POST", "/v1/projects"),
        ):
            body = {"name": "x", "scopes": ["read"]} if "tokens" in path else {"task": "digits", "agent": "dummy"}
            refused = reader.request(method, path, json={"name": "x"} if "projects" in path else body)
            assert (refused.status_code, refused.json()["type"]) == (403, "urn:mleredux:problem:forbidden"), path
            assert "scope" in refused.json()["detail"]
    with client(local, make(ann, scopes=["run"])["token"]) as runner:
        assert runner.get("/v1/runs").status_code == 403


def test_a_revoked_token_is_invalid_immediately(local: LocalServer, ann: httpx.Client) -> None:
    made = make(ann)
    with client(local, made["token"]) as http:
        assert http.get("/v1/me").status_code == 200
        assert ann.delete(f"/v1/tokens/{made['id']}").status_code == 204
        refused = http.get("/v1/me")
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"].startswith("Bearer ")
    assert made["token"] not in refused.text
    assert ann.delete(f"/v1/tokens/{made['id']}").status_code == 404
    assert made["id"] not in [token["id"] for token in ann.get("/v1/tokens").json()["items"]]


def test_a_token_may_always_revoke_itself(local: LocalServer, ann: httpx.Client) -> None:
    made, other = make(ann), make(ann)
    with client(local, made["token"]) as http:
        assert http.delete(f"/v1/tokens/{other['id']}").status_code == 403
        assert http.delete(f"/v1/tokens/{made['id']}").status_code == 204
        assert http.get("/v1/me").status_code == 401


def test_a_token_expires_on_time_and_does_not_outlive_its_creator(local: LocalServer, ann: httpx.Client) -> None:
    hour = make(ann, scopes=["read", "tokens"], expires_in=3600.0)
    with client(local, hour["token"]) as http:
        for asked in ({}, {"expires_in": 7200}):
            assert make(http, **asked)["expires_at"] == hour["expires_at"]
        short = make(http, expires_in=1.0)
        began = time.monotonic()
        assert short["expires_at"] < hour["expires_at"]
    with client(local, short["token"]) as http:
        while http.get("/v1/me").status_code == 200:
            assert time.monotonic() - began < 30, "it does not end"
            time.sleep(0.05)
        assert http.get("/v1/me").status_code == 401
        assert datetime.fromisoformat(short["expires_at"]) <= now()


def test_a_token_of_one_project_can_not_create_tokens_for_others(
    local: LocalServer, admin: httpx.Client, ann: httpx.Client
) -> None:
    me = ann.get("/v1/me").json()
    team = admin.post("/v1/projects", json={"name": "team"}).json()["id"]
    admin.put(f"/v1/projects/{team}/members/{me['user']['id']}", json={"role": "owner"})
    bound = make(ann, scopes=["read", "run", "tokens"], project="team")
    assert bound["project"] == team
    with client(local, bound["token"]) as http:
        assert [project["id"] for project in http.get("/v1/me").json()["projects"]] == [team]
        assert http.get("/v1/me").json()["default_project"] == team
        assert make(http)["project"] == team
        assert make(http, 404, project=me["default_project"])["type"] == "urn:mleredux:problem:not-found"
        assert http.get(f"/v1/projects/{me['default_project']}").status_code == 404
        assert http.get("/v1/runs", params={"project": "ann"}).status_code == 404
        assert {token["project"] for token in http.get("/v1/tokens").json()["items"]} == {team}
        unbound = make(ann, name="for all projects")
        assert http.delete(f"/v1/tokens/{unbound['id']}").status_code == 404
    with httpx.Client(base_url=local.url, headers={"Origin": local.url}, timeout=30) as browser:
        for token, shown in ((unbound, False), (bound, False), (make(ann, scopes=["read", "tokens"]), True)):
            assert browser.post("/ui/sign-in", data={"token": token["token"]}).status_code == 303
            assert ("for all projects" in browser.get("/ui/server").text) == shown
    assert make(ann, 404, project="prj_elsewhere")


def test_only_admins_create_tokens_for_others(admin: httpx.Client, ann: httpx.Client) -> None:
    admin.post("/v1/users", json={"name": "carl"})
    assert make(admin, user="carl", scopes=["read", "run"])["user"] == "carl"
    assert make(admin, 403, user="carl", scopes=["admin"])["detail"]
    assert make(admin, 403, scopes=["admin"], project="admin")["detail"]
    assert make(admin, 404, user="carl", project="ann")
    assert make(ann, 403, user="carl")["detail"]
    assert make(admin, 404, user="nobody")
    assert {token["user"] for token in admin.get("/v1/tokens", params={"limit": 500}).json()["items"]} >= {
        "ann",
        "carl",
    }


def test_an_admin_scope_of_a_non_admin_is_useless(local: LocalServer, ann: httpx.Client) -> None:
    made = make(ann)
    with local.service.database.writing() as session:  # simulate a compromised row
        session.execute(update(Token).where(Token.id == made["id"]).values(scopes=["admin"]))
    with client(local, made["token"]) as http:
        assert http.get("/v1/users").status_code == 403
        assert http.get("/v1/runs").status_code == 403


def test_a_repeat_returns_the_same_token_though_it_is_not_stored(local: LocalServer, ann: httpx.Client) -> None:
    key = {"Idempotency-Key": "one token"}
    asked = {"name": "again", "scopes": ["read"]}
    first, again = (ann.post("/v1/tokens", json=asked, headers=key) for _ in range(2))
    assert (again.json(), again.headers["Idempotency-Replayed"]) == (first.json(), "true")
    with client(local, again.json()["token"]) as http:
        assert http.get("/v1/me").json()["token"]["name"] == "again"
    with local.service.database.reading() as session:
        kept = session.scalars(select(Idempotency.body).where(Idempotency.key == "one token")).one()
    assert first.json()["token"] not in str(kept)
    with client(local, make(ann, scopes=["tokens", "read"])["token"]) as other:  # the same user by another token
        refused = other.post("/v1/tokens", json=asked, headers=key)
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:mleredux:problem:conflict")


def test_each_change_is_in_the_audit_log_without_secrets(local: LocalServer, ann: httpx.Client) -> None:
    made = make(ann)
    ann.delete(f"/v1/tokens/{made['id']}")
    me = ann.get("/v1/me").json()
    with local.service.database.reading() as session:
        rows = session.scalars(select(Audit).where(Audit.target == made["id"]).order_by(Audit.id)).all()
    assert [(row.action, row.user_id, row.token_id) for row in rows] == [
        ("token.create", me["user"]["id"], me["token"]["id"]),
        ("token.revoke", me["user"]["id"], me["token"]["id"]),
    ]


@pytest.mark.parametrize(
    "header", ["", "Basic YTpi", "Bearer", "Bearer mlr_", "Bearer xyz", "Bearer mlr_" + "x" * 5000]
)
def test_invalid_tokens_are_refused_with_a_challenge(local: LocalServer, header: str) -> None:
    refused = httpx.get(f"{local.url}/v1/me", headers={"Authorization": header} if header else {}, timeout=60)
    assert (refused.status_code, refused.json()["type"]) == (401, "urn:mleredux:problem:unauthenticated")
    assert "WWW-Authenticate" in refused.headers
    assert "xxxxx" not in refused.text


def test_cached_lookups_are_dropped_after_a_change(
    local: LocalServer, ann: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(ann)
    tokens = Tokens(local.service.database)
    look_up = tokens._find

    def meanwhile_revoked(hashed: str) -> Caller | None:
        found = look_up(hashed)
        assert ann.delete(f"/v1/tokens/{made['id']}").status_code == 204
        tokens.forget()
        return found

    monkeypatch.setattr(tokens, "_find", meanwhile_revoked)
    assert tokens.caller(made["token"]) is not None  # it was valid when that began
    monkeypatch.undo()
    assert tokens.caller(made["token"]) is None


def test_a_busy_database_does_not_delay_readers(
    local: LocalServer, ann: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BUSY_SECONDS", 60.0)  # a writer waits this long
    made = make(ann)
    with local.service.database.writing() as session, client(local, made["token"]) as http:
        session.execute(text("SELECT 1"))  # a user holds the lock and continues
        began = time.monotonic()
        assert http.get("/v1/me").status_code == 200
        assert time.monotonic() - began < 20
