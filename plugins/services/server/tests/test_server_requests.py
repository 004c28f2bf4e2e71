"""What HTTP says about any request, for every route: `If-Match`, `HEAD`, `Allow`, parameters that do not exist."""

from __future__ import annotations

import inspect
import pickle
import re
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from mleredux_client import Client
from mleredux_server.database.tables import Project
from mleredux_server.protocol.idempotency import claim_of
from mleredux_support.server_local import LocalServer
from pydantic import SecretStr
from sqlalchemy import select

CHANGING = ("patch", "put", "delete")


@pytest.fixture(scope="module")
def http(local: LocalServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {local.token}"}, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def paths(local: LocalServer) -> dict[str, dict[str, Any]]:
    """The routes under `/v1`."""
    found: dict[str, dict[str, Any]] = local.app.openapi()["paths"]
    return {path: operations for path, operations in found.items() if path.startswith("/v1/")}


def filled(local: LocalServer, http: httpx.Client, path: str) -> str:
    """A path with ids of resources that exist."""
    values = {
        "run_id": lambda: local.execute(local.make_run(agent="dummy")).id,
        "user_id": lambda: "admin",
        "project_id": lambda: "admin",
        "task_id": lambda: "digits",
        "agent_id": lambda: "dummy",
        "token_id": lambda: http.get("/v1/tokens").json()["items"][0]["id"],
        "name": lambda: "secret" if "secrets" in path else "agent.log",
    }
    return re.sub(r"{(\w+)}", lambda found: values.get(found[1], lambda: "none")(), path)


def test_a_change_of_any_resource_with_an_old_tag_is_refused(
    local: LocalServer, http: httpx.Client, paths: dict[str, dict[str, Any]]
) -> None:
    http.put("/v1/secrets/secret", json={"value": "1234567890"})
    bodies: dict[str, Any] = {"patch": {}, "put": {"value": "0987654321"}}
    checked = 0
    for path, operations in paths.items():
        for method in operations.keys() & {*CHANGING, "post"}:
            if method == "post" and "{" not in path:
                continue
            there = filled(local, http, path)
            for given in ('"old"', 'W/"old"', '"a", "b"', "no tag", '""'):
                body = {"json": bodies[method]} if method in bodies else {}
                answered = http.request(method.upper(), there, headers={"If-Match": given}, **body)
                assert answered.status_code == 412, (method, path, given, answered.text)
                assert answered.json()["type"] == "urn:mleredux:problem:precondition-failed"
            checked += 1
    assert checked > 15


@pytest.mark.parametrize("many", [False, True], ids=["alone", "among others"])
def test_a_change_with_the_current_tag_is_made(local: LocalServer, http: httpx.Client, many: bool) -> None:
    run = f"/v1/runs/{local.execute(local.make_run()).id}"
    tag = http.get(run).headers["ETag"]
    given = {"If-Match": f'"other", {tag}' if many else tag}
    assert http.patch(run, json={"notes": "a"}, headers=given).status_code == 200
    assert http.patch(run, json={"notes": "b"}, headers=given).status_code == 412
    assert http.delete(run, headers=given).status_code == 412
    assert http.get(run).json()["notes"] == "a"
    assert http.post(f"{run}/cancel", headers=given).status_code == 412, "an action is one on the run"
    assert http.post(f"{run}/cancel", headers={"If-Match": http.get(run).headers["ETag"]}).status_code == 200
    assert http.delete(run, headers={"If-Match": "*"}).status_code == 204
    assert http.delete(run, headers={"If-Match": "*"}).status_code == 412, "it has no state any more"
    assert http.delete(run).status_code == 404


def test_a_resource_without_a_state_of_its_own_is_changed_with_the_tag_of_the_one_above(
    local: LocalServer, http: httpx.Client
) -> None:
    local.user("mia")
    http.put("/v1/secrets/SECRET", json={"value": "1234567890"})
    secret = ("/v1/secrets/SECRET", "/v1/secrets", {"value": "0987654321"})
    for there, above, body in (("/v1/projects/admin/members/mia", "/v1/projects/admin", {"role": "member"}), secret):
        for method, json in (("PUT", body), ("DELETE", None)):
            for tag, expected in (('"old"', {412}), (http.get(above).headers["ETag"], {200, 204})):
                answered = http.request(method, there, json=json, headers={"If-Match": tag})
                assert answered.status_code in expected, (method, there, answered.text)


def test_of_concurrent_changes_with_one_tag_one_is_made(local: LocalServer, http: httpx.Client) -> None:
    with local.service.database.reading() as session:
        project = session.scalars(select(Project).where(Project.name == "admin")).one().id
    tag = http.get("/v1/projects/admin").headers["ETag"]
    answers: list[int] = []

    def change(number: int) -> None:
        place = f"/v1/projects/{project if number % 2 else 'admin'}"
        json = {"quota": {"queued_runs": number + 1}}
        headers = {"If-Match": tag, "Authorization": f"Bearer {local.token}"}
        answers.append(httpx.patch(f"{local.url}{place}", json=json, headers=headers, timeout=60).status_code)

    threads = [threading.Thread(target=change, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200, 412, 412, 412, 412, 412]
    http.patch("/v1/projects/admin", json={"quota": {"queued_runs": None}})


def test_a_tag_opens_nothing(local: LocalServer) -> None:
    run = f"{local.url}/v1/runs/{local.make_run().id}"
    stranger = {"Authorization": f"Bearer {local.user('zoe')}"}
    for given in ("*", '"old"'):
        assert httpx.delete(run, headers={"If-Match": given, **stranger}, timeout=60).status_code in (404, 412)
        assert httpx.delete(run, headers={"If-Match": given}, timeout=60).status_code == 401


def test_parameters_that_a_route_does_not_have_are_refused_by_all(
    local: LocalServer, http: httpx.Client, paths: dict[str, dict[str, Any]]
) -> None:
    for path, operations in paths.items():
        there = filled(local, http, path)
        for method, operation in operations.items():
            known = [item["name"] for item in operation.get("parameters", ()) if item["in"] == "query"]
            for name in (f"{known[0]}s", f"x{known[-1]}") if known else ("anything",):
                answered = http.request(method.upper(), there, params={name: "1"}, json={} if method != "get" else None)
                assert answered.status_code == 422, (method, path, answered.text)
                fields = {item["field"]: item["message"] for item in answered.json()["errors"]}
                assert "no such query parameter" in fields[name]
                assert not known or "Did you mean" in fields[name] or len(name) < 4, fields


def test_parameters_with_a_single_value_are_not_repeated(
    local: LocalServer, http: httpx.Client, paths: dict[str, dict[str, Any]]
) -> None:
    checked = 0
    for path, operations in paths.items():
        items = [item for item in operations.get("get", {}).get("parameters", ()) if item["in"] == "query"]
        there = filled(local, http, path) if items else path
        for item in items:
            kinds = [item["schema"], *item["schema"].get("anyOf", ())]
            several = any(kind.get("type") == "array" for kind in kinds)
            answered = http.get(there, params=[(item["name"], "1"), (item["name"], "2")])
            refused = "must not be repeated" in answered.text
            assert refused != several and (several or answered.status_code == 422), (path, item["name"])
            checked += 1
    assert checked > 20


def test_a_mistyped_filter_selects_nothing(http: httpx.Client) -> None:
    answered = http.get("/v1/runs", params={"statuss": "failed", "limit": 3})
    assert answered.status_code == 422
    assert answered.json()["detail"] == "statuss: There is no such query parameter. Did you mean status?"


def test_all_uploads_may_be_larger_than_other_bodies(http: httpx.Client, paths: dict[str, dict[str, Any]]) -> None:
    content = b"x" * (2 << 20)
    assert http.post("/v1/runs", content=content).status_code == 413
    uploads = [path for path, found in paths.items() if "multipart/form-data" in str(found.get("post"))]
    for path in uploads:
        answered = http.post(path, data={"task": "digits"}, files={"file": ("file", content)})
        assert answered.status_code < 500 and answered.status_code != 413, (path, answered.text)
    assert len(uploads) == 3


def test_head_is_get_without_a_body_everywhere(
    local: LocalServer, http: httpx.Client, paths: dict[str, dict[str, Any]]
) -> None:
    for path in [*(path for path, operations in paths.items() if "get" in operations), "/healthz", "/metrics"]:
        there = filled(local, http, path)
        got, head = http.get(there), http.head(there)
        assert (head.status_code, head.content) == (got.status_code, b""), path
        assert head.headers.get("ETag") == got.headers.get("ETag"), path
        assert head.headers["Content-Type"] == got.headers["Content-Type"], path
    counted = [line for line in http.get("/metrics").text.splitlines() if 'method="HEAD"' in line]
    assert any('route="/v1/runs/{run_id}"' in line for line in counted), counted
    run = local.make_run()
    (run.logs_dir / "agent.log").write_text("line\n" * 20)
    whole = http.head(f"/v1/runs/{run.id}/logs/agent.log", headers={"Range": "bytes=0-3"})
    assert (whole.status_code, whole.headers["Content-Length"]) == (200, "100"), "ranges are of GET alone"
    stream = http.head(f"/v1/runs/{local.make_run().id}/events", headers={"Accept": "text/event-stream"})
    assert (stream.status_code, stream.headers["Content-Type"].partition(";")[0]) == (200, "text/event-stream")


def test_allow_names_all_methods_of_a_path(
    local: LocalServer, http: httpx.Client, paths: dict[str, dict[str, Any]]
) -> None:
    for path, operations in {**paths, "/docs": {"get": {}}, "/metrics": {"get": {}}}.items():
        answered = http.request("QUERY", filled(local, http, path))
        assert answered.status_code == 405, path
        alike = [other for other in paths if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", other), path)]
        methods = {method.upper() for other in alike for method in paths[other]} | {*map(str.upper, operations)}
        assert set(answered.headers["Allow"].split(", ")) == methods | ({"HEAD"} if "GET" in methods else set()), path
    there = f"/v1/runs/{local.make_run().id}"
    assert http.put(there).headers["Allow"] == "DELETE, GET, HEAD, PATCH"


def test_the_document_has_the_headers_and_limits_of_each_route(
    local: LocalServer, paths: dict[str, dict[str, Any]]
) -> None:
    routes: dict[str, Any] = {}
    for router in [one.original_router for one in local.app.router.routes if hasattr(one, "original_router")]:
        routes |= {route.name: route.endpoint for route in router.routes}
    for path, operations in paths.items():
        for method, operation in operations.items():
            names = {item["name"] for item in operation.get("parameters", ()) if item["in"] == "header"}
            assert ("If-Match" in names) == (method in CHANGING or (method == "post" and "{" in path)), path
            repeatable = f"{claim_of.__name__}(" in inspect.getsource(routes[operation["operationId"]])
            assert ("Idempotency-Key" in names) == repeatable, (method, path)
            assert "Retry-After" in operation["responses"]["429"]["headers"]


def test_the_creation_of_anything_is_in_the_audit_log(local: LocalServer, http: httpx.Client) -> None:
    limits = {"limits": {"time_limit": 60}}
    run = http.post("/v1/runs", json={"task": "digits", "agent": "dummy", "sandbox": "process", **limits}).json()["id"]
    matrix = {"tasks": ["digits"], "agents": ["dummy"], "seeds": [0, 1, 2], "sandbox": "process", "name": "audited"}
    experiment = http.post("/v1/experiments", json=matrix).json()["id"]
    build = http.post("/v1/builds", json={"agent": "dummy", "sandbox": "process"}).json()["id"]
    form = {"data": {"task": "digits"}, "files": {"file": ("s.csv", b"id,label\n", "text/csv")}}
    submission = http.post("/v1/submissions", **form).json()["id"]  # type: ignore[arg-type]
    noted = {(item["action"], item["target"].split()[-1]) for item in http.get("/v1/audit").json()["items"]}
    made = [("run", run), ("run", experiment), ("build", build), ("submission", submission)]
    assert {(f"{kind}.create", name) for kind, name in made} <= noted


def test_a_pinned_run_is_not_deleted_before_its_pin_is_removed(local: LocalServer, http: httpx.Client) -> None:
    run = f"/v1/runs/{local.execute(local.make_run()).id}"
    http.patch(run, json={"pinned": True})
    refused = http.delete(run)
    assert refused.status_code == 409 and "pinned" in refused.json()["detail"]
    many = http.post("/v1/runs/bulk", json={"action": "delete", "runs": [run.rpartition("/")[2]]})
    assert [item["ok"] for item in many.json()["results"]] == [False]
    http.patch(run, json={"pinned": False})
    assert http.delete(run).status_code == 204


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_what_the_client_returns_can_be_pickled_without_the_token(
    local: LocalServer, monkeypatch: pytest.MonkeyPatch, protocol: int
) -> None:
    with Client(local.url, SecretStr(local.token)) as client:
        run = client.get_run(local.make_run().id)
        packed = pickle.dumps([run, client.me()], protocol)
    assert local.token.encode() not in packed
    monkeypatch.setenv("MLEREDUX_TOKEN", local.token)
    again = pickle.loads(packed)[0]
    assert (again.id, again.state) == (run.id, run.state)
    assert again.refresh().id == run.id
