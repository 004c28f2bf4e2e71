"""Tasks, techniques, agents, graders, sandboxes: the same as in the command line's output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import structlog
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux._core.locations import default_data_dir
from mleredux_support.server_local import LocalServer


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """The server is in this process: its log must not mix with the output of the command line."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """An admin's client of a server with the command line's data directory."""
    place = Path(tmp_path_factory.mktemp("local")) / "runs"
    with LocalServer(place, data_dir=default_data_dir()).running() as started:
        bearer = {"Authorization": f"Bearer {started.token}"}
        with httpx.Client(base_url=started.url, headers=bearer, timeout=30) as client:
            yield client


def local(*arguments: str) -> object:
    """Return the output of `mleredux … --json` here."""
    answered = CliRunner().invoke(root, [*arguments, "--json"], catch_exceptions=False)
    return json.loads(answered.stdout)


def all_pages(http: httpx.Client, path: str, **asked: object) -> list[dict[str, object]]:
    """Return items of all pages, by their `Link`s."""
    items, url = [], str(httpx.URL(path, params={"limit": 7, **asked}))
    while url:
        answered = http.get(url)
        assert answered.status_code == 200, answered.text
        items += answered.json()["items"]
        link = answered.links.get("next")
        assert (link is None) == (answered.json()["next"] is None)
        url = link["url"] if link else ""
    return items


@pytest.mark.parametrize("kind", ["tasks", "techniques", "agents", "graders", "sandboxes"])
def test_lists_are_those_of_the_command_line(http: httpx.Client, kind: str) -> None:
    assert all_pages(http, f"/v1/{kind}") == local("list", kind)


def test_tasks_are_filtered_by_set_category_technique_and_text(http: httpx.Client) -> None:
    for asked in ({"set": "starter"}, {"category": "tabular"}, {"technique": "cv", "set": "starter"}):
        options = [part for name, value in asked.items() for part in (f"--{name}", value)]
        assert all_pages(http, "/v1/tasks", **asked) == local("list", *options)
    found = all_pages(http, "/v1/tasks", q="HANDWRITTEN")
    assert [task["id"] for task in found] == ["digits", "digits-code"]
    assert "digits" in [task["id"] for task in all_pages(http, "/v1/tasks", q="Digi")]


def test_an_unknown_set_is_reported_with_the_known_ones(http: httpx.Client) -> None:
    answered = http.get("/v1/tasks", params={"set": "nowhere"})
    assert answered.status_code == 404
    assert "starter" in answered.json()["hint"]


@pytest.mark.parametrize("task", ["digits", "cv@digits", "spaceship-titanic+private"])
def test_a_task_is_shown_as_on_the_command_line_without_paths(http: httpx.Client, task: str) -> None:
    answered = http.get(f"/v1/tasks/{task}").json()
    expected = local("show", task)
    assert isinstance(expected, dict)
    del expected["data"]
    assert answered.pop("plugin") == ("starter" if "digits" in task else "mlebench")
    assert answered == expected


def test_an_unknown_task_is_not_found_and_similar_names_are_suggested(http: httpx.Client) -> None:
    answered = http.get("/v1/tasks/digit")
    assert (answered.status_code, answered.json()["type"]) == (404, "urn:mleredux:problem:not-found")
    assert "digits" in answered.json()["hint"]


def test_a_missing_obfuscated_description_is_reported(http: httpx.Client) -> None:
    answered = http.get("/v1/tasks/digits", params={"obfuscated": True})
    assert answered.status_code in (200, 422)
    assert http.get("/v1/tasks/spaceship-titanic", params={"obfuscated": True}).json()["description"]


def test_agents_are_shown_without_variables_and_paths_of_the_server(http: httpx.Client) -> None:
    for agent in all_pages(http, "/v1/agents"):
        answered = http.get(f"/v1/agents/{agent['id']}")
        shown, expected = answered.json(), local("agent", "show", str(agent["id"]))
        assert isinstance(expected, dict)
        assert shown["command"] == expected["command"]
        assert shown["limits"] == expected["limits"]
        assert not {"env", "pass_env", "secrets"} & shown.keys()
        for private in {sys.prefix, str(Path.home()), os.getcwd(), str(Path(__file__).parents[1])}:
            assert f'"{private}' not in answered.text


def test_showing_an_agent_by_reference_never_fetches_it(http: httpx.Client) -> None:
    answered = http.get("/v1/agents/repo:https:nowhere.example@main")
    assert answered.status_code == 404
    assert "/v1/builds" in answered.json()["hint"]


def test_pages_end_and_foreign_cursors_are_refused(http: httpx.Client) -> None:
    for cursor in ("?", "bnVsbA", "WzFd", "W251bGxd", "x" * 1999, "WyJcdTAwMDAiXQ"):
        answered = http.get("/v1/tasks", params={"cursor": cursor})
        assert (answered.status_code, answered.json()["type"]) == (422, "urn:mleredux:problem:invalid"), cursor
    assert http.get("/v1/tasks", params={"limit": 501}).status_code == 422
    assert http.get("/v1/tasks", params={"limit": 0}).status_code == 422


def test_me_returns_the_authenticated_user(http: httpx.Client) -> None:
    me = http.get("/v1/me").json()
    assert (me["user"]["name"], me["user"]["admin"]) == ("admin", True)
    assert me["token"]["scopes"] == ["admin"]
    [project] = me["projects"]
    assert (project["id"], project["name"], project["role"]) == (me["default_project"], "admin", "owner")
    assert project["usage"]["running_runs"] == 0
    assert http.get("/v1/me", headers={"Authorization": "Bearer mlr_wrong"}).status_code == 401
