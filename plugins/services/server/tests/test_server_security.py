"""Authorization of every route: the routes come from the OpenAPI document, so that no new one is forgotten."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from mleredux_client.folders import LocalAgent, packed
from mleredux_server.accounts.accounts import make_token, make_user
from mleredux_server.accounts.identity import hash_of
from mleredux_server.accounts.limits import RateLimit
from mleredux_server.database.tables import RunRow, Token, User, now
from mleredux_server.operations import logs
from mleredux_support.server_local import LocalServer
from sqlalchemy import select, update

Operation = tuple[str, str]
PUBLIC: set[Operation] = {("get", path) for path in ("/healthz", "/readyz", "/metrics", "/v1")}
ANY = "any"
"""The holder of a token."""
SCOPES: dict[Operation, str] = {
    ("get", "/v1/me"): ANY,
    ("get", "/v1/tokens"): "tokens",
    ("post", "/v1/tokens"): "tokens",
    ("delete", "/v1/tokens/{token_id}"): "tokens",
    ("get", "/v1/users"): "admin",
    ("post", "/v1/users"): "admin",
    ("get", "/v1/users/{user_id}"): ANY,
    ("delete", "/v1/users/{user_id}"): "admin",
    ("post", "/v1/users/{user_id}/enable"): "admin",
    ("get", "/v1/projects"): "read",
    ("post", "/v1/projects"): "tokens",
    ("get", "/v1/projects/{project_id}"): "read",
    ("patch", "/v1/projects/{project_id}"): "tokens",
    ("put", "/v1/projects/{project_id}/members/{user_id}"): "tokens",
    ("delete", "/v1/projects/{project_id}/members/{user_id}"): "tokens",
    ("get", "/v1/tasks"): "read",
    ("get", "/v1/tasks/{task_id}"): "read",
    ("get", "/v1/techniques"): "read",
    ("get", "/v1/agents"): "read",
    ("get", "/v1/agents/{agent_id}"): "read",
    ("get", "/v1/graders"): "read",
    ("get", "/v1/sandboxes"): "read",
    ("get", "/v1/runs"): "read",
    ("post", "/v1/runs"): "run",
    ("get", "/v1/runs/{run_id}"): "read",
    ("delete", "/v1/runs/{run_id}"): "run",
    ("patch", "/v1/runs/{run_id}"): "run",
    ("post", "/v1/runs/bulk"): "run",
    ("post", "/v1/runs/{run_id}/cancel"): "run",
    ("post", "/v1/runs/{run_id}/retry"): "run",
    ("get", "/v1/runs/{run_id}/events"): "read",
    ("get", "/v1/runs/{run_id}/logs"): "read",
    ("get", "/v1/runs/{run_id}/logs/{name}"): "read",
    ("get", "/v1/runs/{run_id}/report"): "read",
    ("get", "/v1/runs/{run_id}/rollout"): "read",
    ("get", "/v1/runs/{run_id}/scores"): "read",
    ("get", "/v1/runs/{run_id}/resources"): "read",
    ("get", "/v1/runs/{run_id}/artifacts"): "read",
    ("get", "/v1/runs/{run_id}/artifacts/{path}"): "read",
    ("head", "/v1/runs/{run_id}/artifacts/{path}"): "read",
    ("get", "/v1/runs/{run_id}/archive"): "read",
    ("get", "/v1/experiments"): "read",
    ("post", "/v1/experiments"): "run",
    ("post", "/v1/experiments/check"): "run",
    ("get", "/v1/experiments/{experiment_id}"): "read",
    ("get", "/v1/experiments/{experiment_id}/analysis"): "read",
    ("get", "/v1/experiments/{experiment_id}/table"): "read",
    ("post", "/v1/experiments/{experiment_id}/cancel"): "run",
    ("post", "/v1/experiments/{experiment_id}/extend"): "run",
    ("post", "/v1/experiments/{experiment_id}/retry"): "run",
    ("get", "/v1/submissions"): "read",
    ("post", "/v1/submissions"): "grade",
    ("get", "/v1/submissions/{submission_id}"): "read",
    ("delete", "/v1/submissions/{submission_id}"): "grade",
    ("post", "/v1/validations"): "grade",
    ("get", "/v1/audit"): "admin",
    ("get", "/v1/secrets"): "read",
    ("put", "/v1/secrets/{name}"): "run",
    ("delete", "/v1/secrets/{name}"): "run",
    ("get", "/v1/sources"): "read",
    ("post", "/v1/sources"): "run",
    ("get", "/v1/sources/{source_id}"): "read",
    ("delete", "/v1/sources/{source_id}"): "run",
    ("get", "/v1/webhooks"): "read",
    ("post", "/v1/webhooks"): "run",
    ("delete", "/v1/webhooks/{webhook_id}"): "run",
    ("get", "/v1/webhooks/{webhook_id}/deliveries"): "read",
    ("post", "/v1/webhooks/{webhook_id}/test"): "run",
    ("get", "/v1/builds"): "read",
    ("post", "/v1/builds"): "run",
    ("get", "/v1/builds/{build_id}"): "read",
    ("get", "/v1/builds/{build_id}/log"): "read",
}
ALL = ["read", "run", "grade", "tokens"]
CONTENT = "class,id\n"


class Place:
    """A server with two users, each with one resource of every type."""

    def __init__(self, local: LocalServer) -> None:
        self.local = local
        local.app.state.limits.of_failures = RateLimit(10**6)
        local.app.state.limits.of_user = RateLimit(10**6)
        self.answers: list[str] = []
        self.secrets = [local.token]
        self.log = io.StringIO()
        self.http = httpx.Client(base_url=local.url, timeout=30)
        self.token = {name: self._user(name) for name in ("ann", "bob", "gone")}
        self.things = {name: self._things(name) for name in ("ann", "bob")}

    def ask(self, method: str, path: str, token: str | None, **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        headers |= more.pop("headers", {})
        answer = self.http.request(method.upper(), path, headers=headers, **more)
        if not (method == "post" and path == "/v1/tokens"):
            self.answers.append(answer.text + str(answer.headers.multi_items()))
        return answer

    def token_of(self, user: str, scopes: list[str], **more: Any) -> str:
        with self.local.service.database.writing() as session:
            found = session.scalars(select(User).where(User.name == user)).one()
            said = make_token(session, found, "made", scopes, **more)[1]
        self.secrets.append(said)
        return said

    def _user(self, name: str) -> str:
        with self.local.service.database.writing() as session:
            make_user(session, name)
        return self.token_of(name, ALL)

    def _things(self, name: str) -> dict[str, str]:
        token = self.token[name]
        run = self.local.make_run(user=name)
        if name == "ann":
            self.local.execute(run)
        me = self.ask("get", "/v1/me", token).json()
        project = me["projects"][0]["id"]
        quota = {"sandboxes": ["process", "docker"]}
        assert self.ask("patch", f"/v1/projects/{project}", self.local.token, json={"quota": quota}).status_code == 200
        made = {
            "experiment_id": self.ask(
                "post", "/v1/experiments", token, json={"tasks": ["digits"], "agents": ["dummy"], "sandbox": "process"}
            ),
            "submission_id": self.ask(
                "post", "/v1/submissions", token, data={"task": "digits"}, files={"file": ("a.csv", CONTENT)}
            ),
            "build_id": self.ask("post", "/v1/builds", token, json={"agent": "dummy"}),
            "webhook_id": self.ask("post", "/v1/webhooks", token, json={"url": "http://127.0.0.1:9/hook"}),
            "source_id": self._upload(name, token),
        }
        for answer in made.values():
            assert answer.status_code in (201, 202), answer.text
        return {
            "run_id": run.id,
            "token_id": me["token"]["id"],
            "user_id": me["user"]["id"],
            "project_id": project,
            "path": "submission.csv",
            "name": "agent.log",
            "task_id": "digits",
            "agent_id": "dummy",
            **{kind: answer.json()["id"] for kind, answer in made.items()},
        }

    def _upload(self, name: str, token: str) -> httpx.Response:
        folder = self.local.service.store.path.parent / f"agent-of-{name}"
        folder.mkdir()
        (folder / "solve.py").write_text(f"print({name!r})\n")
        with packed(LocalAgent(folder)) as package, package.archive.open("rb") as file:
            return self.ask("post", "/v1/sources", token, files={"file": file})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    with LocalServer(
        Path(tmp_path_factory.mktemp("security")) / "runs", webhook_hosts=("127.0.0.1:9",)
    ).running() as local:
        made = Place(local)
        logs.configure("json", "info", made.log)
        yield made
        made.http.close()
    root.handlers[:] = before
    root.setLevel(level)
    logging.captureWarnings(False)
    structlog.reset_defaults()


def operations(place: Place) -> list[Operation]:
    document = place.local.app.openapi()
    return [(method, path) for path, of in document["paths"].items() for method in of]


def filled(path: str, things: dict[str, str]) -> str:
    return path.format_map(things)


def kind_of(answer: httpx.Response) -> str:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    assert answer.headers["X-Request-Id"] == answer.json()["instance"]
    return str(answer.json()["type"]).removeprefix("urn:mleredux:problem:")


def test_each_route_has_its_scope_in_the_table_above(place: Place) -> None:
    assert set(operations(place)) - {("head", "/v1/runs/{run_id}/artifacts/{path}")} == (PUBLIC | set(SCOPES)) - {
        ("head", "/v1/runs/{run_id}/artifacts/{path}")
    }


def test_without_a_valid_token_every_request_is_refused(place: Place) -> None:
    expired = place.token_of("ann", ALL, expires_at=now() - timedelta(seconds=1))
    revoked, disabled = place.token_of("ann", ALL), place.token["gone"]
    with place.local.service.database.writing() as session:
        session.execute(update(Token).where(Token.hash == hash_of(revoked)).values(revoked_at=now()))
        session.execute(update(User).where(User.name == "gone").values(disabled_at=now()))
    good = place.token["ann"]
    wrong = {
        "none": None,
        "unknown": "mlr_" + "x" * 40,
        "no-prefix": good.removeprefix("mlr_"),
        "cut": good[:-1],
        "longer": good + "x",
        "upper": good.upper(),
        "expired": expired,
        "revoked": revoked,
        "disabled": disabled,
    }
    for method, path in SCOPES:
        for name, token in wrong.items():
            answer = place.ask(method, filled(path, place.things["ann"]), token)
            assert answer.status_code == 401, (name, method, path)
            assert answer.headers["WWW-Authenticate"].startswith("Bearer"), (name, method, path)
            assert method == "head" or kind_of(answer) == "unauthenticated"


def test_unauthenticated_bodies_are_not_read(place: Place) -> None:
    for body in (b"{", b"\xff", b"[" * 30_000):
        answer = place.ask("post", "/v1/runs", None, content=body, headers={"Content-Type": "application/json"})
        assert kind_of(answer) == "unauthenticated"


@pytest.mark.parametrize("scheme", ["Basic {}", "bearer", "Bearer x", "Token {}", "{}", "Bearer {} {}", "Bearer {}\tx"])
def test_a_token_in_another_form_is_invalid(place: Place, scheme: str) -> None:
    header = {"Authorization": scheme.format(place.token["ann"], place.token["ann"])}
    assert place.ask("get", "/v1/me", None, headers=header).status_code == 401


def test_a_token_in_the_url_is_ignored(place: Place) -> None:
    for name in ("token", "access_token", "api_key"):
        assert httpx.get(f"{place.local.url}/v1/me", params={name: place.token["ann"]}, timeout=60).status_code == 401


def test_public_routes_need_no_token_and_disclose_nothing_about_users(place: Place) -> None:
    for method, path in PUBLIC:
        answer = place.ask(method, path, None)
        assert answer.status_code == 200
        for word in ("ann", "usr_", "prj_", "tok_", place.things["ann"]["run_id"]):
            assert f'"{word}' not in answer.text


def test_each_route_refuses_a_token_without_its_scope_and_accepts_one_with_it(place: Place) -> None:
    only = {scope: place.token_of("ann", [scope]) for scope in ALL}
    lacking = {scope: place.token_of("ann", [one for one in ALL if one != scope]) for scope in ALL}
    lacking["admin"] = place.token["ann"]
    missing = {**dict.fromkeys(place.things["ann"], "nothing-of-that-name"), "task_id": "digits", "agent_id": "dummy"}
    for (method, path), scope in SCOPES.items():
        if scope == ANY:
            continue
        refused = place.ask(method, filled(path, missing), lacking[scope])
        assert refused.status_code == 403, (method, path)
        assert method == "head" or kind_of(refused) == "forbidden"
        if scope != "admin":
            taken = place.ask(method, filled(path, missing), only[scope])
            allowed = {200, 201, 202, 404, 406, 409, 413, 422}
            if (method, path) in {("post", "/v1/projects"), ("patch", "/v1/projects/{project_id}")}:
                allowed |= {403}  # not an admin
            assert taken.status_code in allowed, (method, path, taken.text)


def test_the_scope_admin_is_useless_without_an_admin_user(place: Place) -> None:
    token = place.token_of("ann", ["admin"])
    assert place.ask("get", "/v1/users", token).status_code == 403
    assert place.ask("get", f"/v1/runs/{place.things['bob']['run_id']}", token).status_code in (403, 404)


def test_other_users_resources_are_reported_as_not_found(place: Place) -> None:
    """The same text for a wrong id and for another user's id, on each route that has an id."""
    theirs, token = place.things["ann"], place.token["bob"]
    shared = {"task_id", "agent_id"}
    before = {path: place.ask("get", filled(path, theirs), place.token["ann"]).text for path in _shown()}
    tried = 0
    for (method, path), scope in SCOPES.items():
        names = {part.partition("}")[0] for part in path.split("{")[1:]} - shared - {"path", "name"}
        if not names or scope == "admin":
            continue
        for name in names:
            mixed = {**place.things["bob"], "path": theirs["path"], "name": theirs["name"], name: theirs[name]}
            if name == "user_id":
                mixed["project_id"] = place.things["bob"]["project_id"]
                continue  # adding members is tested with the projects
            wrong = {**mixed, name: theirs[name][:-4] + "2222"}
            body = {"json": {"role": "member"}} if method == "put" else {"json": {}} if method == "patch" else {}
            another = place.ask(method, filled(path, mixed), token, **body)
            nothing = place.ask(method, filled(path, wrong), token, **body)
            assert another.status_code == nothing.status_code == 404, (method, path, another.text, nothing.text)
            if method != "head":
                assert _words(another, theirs[name]) == _words(nothing, wrong[name]), (method, path)
                assert kind_of(another) == "not-found"
            tried += 1
    assert tried > 20
    assert before == {path: place.ask("get", filled(path, theirs), place.token["ann"]).text for path in _shown()}


def _shown() -> list[str]:
    return ["/v1/runs/{run_id}", "/v1/experiments/{experiment_id}", "/v1/submissions/{submission_id}",
            "/v1/builds/{build_id}"]  # fmt: skip


def _words(answer: httpx.Response, name: str) -> str:
    return str(answer.json()["detail"]).replace(name, "NAME")


def test_lists_show_nothing_of_other_users(place: Place) -> None:
    theirs, token = place.things["ann"], place.token["bob"]
    for method, path in SCOPES:
        if method == "get" and "{" not in path and SCOPES[method, path] != "admin":
            text = place.ask("get", path, token).text
            for kind in (
                "run_id",
                "token_id",
                "user_id",
                "project_id",
                "experiment_id",
                "submission_id",
                "build_id",
                "webhook_id",
                "source_id",
            ):
                assert theirs[kind] not in text, (path, kind)
    for query in (f"project={theirs['project_id']}", "project=ann", f"experiment={theirs['experiment_id']}"):
        answer = place.ask("get", f"/v1/runs?{query}", token)
        assert answer.status_code == 404 or answer.json()["items"] == []


def test_nothing_is_created_in_another_user_s_project(place: Place) -> None:
    token = place.token["bob"]
    for project in (place.things["ann"]["project_id"], "ann"):
        run = {"task": "digits", "agent": "dummy", "sandbox": "process", "project": project}
        assert place.ask("post", "/v1/runs", token, json=run).status_code == 404
        matrix = {"tasks": ["digits"], "agents": ["dummy"], "project": project}
        assert place.ask("post", "/v1/experiments", token, json=matrix).status_code == 404
        assert place.ask("post", "/v1/builds", token, json={"agent": "dummy", "project": project}).status_code == 404
        form = {"data": {"task": "digits", "project": project}, "files": {"file": ("a.csv", CONTENT)}}
        assert place.ask("post", "/v1/submissions", token, **form).status_code == 404
        asked = {"name": "x", "scopes": ["read"], "project": project}
        assert place.ask("post", "/v1/tokens", token, json=asked).status_code == 404
    with place.local.service.database.reading() as session:
        owners = session.scalars(select(RunRow.user_id).where(RunRow.project_id == place.things["ann"]["project_id"]))
        assert set(owners) == {place.things["ann"]["user_id"]}


def test_users_can_not_raise_their_own_permissions(place: Place) -> None:
    token, mine = place.token_of("bob", ["tokens", "read"]), place.things["bob"]
    for scopes in (["run"], ["admin"], ["read", "grade"]):
        asked = {"name": "more", "scopes": scopes}
        assert place.ask("post", "/v1/tokens", token, json=asked).status_code == 403
    asked = {"name": "more", "scopes": ["read"], "user": "ann"}
    assert place.ask("post", "/v1/tokens", token, json=asked).status_code in (403, 404)
    quota = {"quota": {"concurrent_runs": None, "networks": ["open"]}}
    assert place.ask("patch", f"/v1/projects/{mine['project_id']}", token, json=quota).status_code == 403
    assert place.ask("post", "/v1/users", token, json={"name": "eve", "admin": True}).status_code == 403
    run = {"task": "digits", "agent": "dummy", "network": "open"}
    assert place.ask("post", "/v1/runs", place.token["bob"], json=run).status_code == 403


def test_no_secret_is_in_any_response_or_in_the_log(place: Place) -> None:
    """Inspects all responses to the tests above."""
    said = "\n".join(place.answers) + place.log.getvalue()
    assert len(place.answers) > 500
    assert "request" in place.log.getvalue()
    for secret in place.secrets:
        assert secret not in said
        assert hash_of(secret) not in said
    assert "Traceback" not in "\n".join(place.answers)
    assert str(place.local.service.store.path) not in "\n".join(place.answers)
    for line in place.log.getvalue().splitlines():
        json.loads(line)
