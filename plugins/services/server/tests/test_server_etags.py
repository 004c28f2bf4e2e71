"""ETags: equal while nothing changed, different after a change, and 304 for clients with a current copy."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from mleredux_server.protocol.etags import matches, tag_of
from mleredux_support.server_local import LocalServer


@pytest.fixture(scope="module")
def http(local: LocalServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {local.token}"}, timeout=30) as client:
        yield client


@pytest.mark.parametrize(
    "kind", ["run", "task", "agent", "project", "user", "runs", "tasks", "techniques", "experiments"]
)
def test_unchanged_responses_are_not_sent_again(local: LocalServer, http: httpx.Client, kind: str) -> None:
    paths = {
        "run": f"/v1/runs/{local.make_run().id}",
        "task": "/v1/tasks/digits",
        "agent": "/v1/agents/dummy",
        "project": "/v1/projects/admin",
        "user": "/v1/users/admin",
    }
    path = paths.get(kind, f"/v1/{kind}")
    first = http.get(path)
    tag = first.headers["ETag"]
    assert tag == tag_of(first.content)
    for given in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        again = http.get(path, headers={"If-None-Match": given})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
        assert "Content-Length" not in again.headers
    changed = http.get(path, headers={"If-None-Match": '"other"'})
    assert (changed.status_code, changed.content) == (200, first.content)


def test_a_change_gives_a_new_tag(local: LocalServer, http: httpx.Client) -> None:
    run = local.make_run().id
    before = http.get(f"/v1/runs/{run}").headers["ETag"]
    local.settle(run, "failed")
    after = http.get(f"/v1/runs/{run}", headers={"If-None-Match": before})
    assert after.status_code == 200
    assert after.headers["ETag"] != before


def test_errors_and_other_methods_have_no_tag(http: httpx.Client) -> None:
    assert "ETag" not in http.get("/v1/runs/none", headers={"If-None-Match": "*"}).headers
    assert "ETag" not in http.post("/v1/users", json={"name": "xaver"}).headers


def test_other_users_resources_are_not_found_even_with_their_tag(local: LocalServer, http: httpx.Client) -> None:
    run = local.make_run().id
    tag = http.get(f"/v1/runs/{run}").headers["ETag"]
    bearer = {"Authorization": f"Bearer {local.user('yves')}"}
    for given in (tag, "*"):
        answered = httpx.get(f"{local.url}/v1/runs/{run}", headers={**bearer, "If-None-Match": given}, timeout=60)
        assert answered.status_code == 404


@pytest.mark.parametrize(
    ("given", "strongly", "weakly"),
    [
        ('"a"', True, True),
        ('W/"a"', False, True),
        ('"b","a"', True, True),
        ("*", True, True),
        ("a", False, False),
        ("", False, False),
    ],
)
def test_tags_are_compared_as_specified(given: str, strongly: bool, weakly: bool) -> None:
    assert matches(given, '"a"') is strongly
    assert matches(given, '"a"', weakly=True) is weakly
