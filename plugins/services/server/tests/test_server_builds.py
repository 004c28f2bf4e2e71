"""Agents' environments built ahead, and which agents users who do not administer the server may name."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mleredux_server.database.tables import BuildRow, Job
from mleredux_server.protocol.problems import Problem
from mleredux_server.runs.references import check_address, check_agent, check_agent_reference
from mleredux_server.settings import Settings
from mleredux_support.server import ServerProcess
from mleredux_support.server_local import LocalServer
from sqlalchemy import select

HERE = Settings(runs_dir=Path("runs"))
MANIFEST = """\
[agent]
id = "built"
command = ["sh", "-c", "true"]
[build]
dockerfile = "Dockerfile"
[environment]
secrets = ["DATABASE_PASSWORD"]
"""


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server that builds nothing: builds stay queued."""
    offered = ("DATABASE_PASSWORD",)
    with LocalServer(tmp_path_factory.mktemp("local") / "runs", agent_variables=offered).running() as running:
        running.member = running.user("member")  # type: ignore[attr-defined]
        yield running


@pytest.fixture(scope="module")
def member(local: LocalServer) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {local.member}"}  # type: ignore[attr-defined]
    with httpx.Client(base_url=local.url, headers=headers, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def building(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """The admin's client of a complete server, with its workers."""
    base = {"MLEREDUX_BASE_IMAGE": os.environ.get("MLEREDUX_BASE_IMAGE", "mleredux/debian-python:trixie")}
    with ServerProcess(tmp_path_factory.mktemp("server") / "runs", "--workers", "1", env=base) as server:
        headers = {"Authorization": f"Bearer {server.token}"}
        with httpx.Client(base_url=server.url, headers=headers, timeout=60) as client:
            yield client


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """An agent in a git repository."""
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "mleredux-agent.toml").write_text(MANIFEST)
    (folder / "Dockerfile").write_text("ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nRUN echo building-now\n")
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "An agent"]):
        subprocess.run([*git, *command], check=True)
    return folder


def finished(client: httpx.Client, answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/v1/builds/{found['id']}"
    deadline = time.monotonic() + 120
    while found["status"] not in ("ready", "failed") and time.monotonic() < deadline:
        time.sleep(0.1)
        found = client.get(f"/v1/builds/{found['id']}").json()
    return found


def test_an_installed_agent_is_built(building: httpx.Client) -> None:
    made = finished(building, building.post("/v1/builds", json={"agent": "dummy", "sandbox": "process"}))
    assert (made["status"], made["agent"], made["message"]) == ("ready", "dummy", None)
    assert made["image"]
    assert isinstance(made["cached"], bool)
    assert [one["id"] for one in building.get("/v1/builds").json()["items"]] == [made["id"]]


def test_a_failed_build_reports_the_reason_and_its_log_ends(building: httpx.Client, tmp_path: Path) -> None:
    made = finished(building, building.post("/v1/builds", json={"agent": f"repo:{tmp_path}"}))
    assert made["status"] == "failed"
    assert "mleredux-agent.toml" in made["message"]
    headers = {"Accept": "text/event-stream"}
    with building.stream("GET", f"/v1/builds/{made['id']}/log", headers=headers) as answer:
        assert 'event: end\ndata: {"status": "failed"}' in answer.read().decode()
    missing = building.get(f"/v1/builds/{made['id']}/log")
    assert (missing.status_code, missing.json()["type"]) == (404, "urn:mleredux:problem:not-found")


@pytest.mark.docker
def test_a_repository_is_pinned_built_and_followed_live(
    building: httpx.Client, repository: Path, docker_base_image: str
) -> None:
    first = finished(building, building.post("/v1/builds", json={"agent": f"repo:{repository}@main"}))
    assert first["status"] == "ready", first["message"]
    commit = subprocess.run(["git", "-C", str(repository), "rev-parse", "HEAD"], capture_output=True, text=True)
    assert first["agent"] == f"repo:{repository}@{commit.stdout.strip()}"
    log = building.get(f"/v1/builds/{first['id']}/log").text
    assert "building-now" in log
    headers = {"Accept": "text/event-stream"}
    with building.stream("GET", f"/v1/builds/{first['id']}/log", headers=headers) as answer:
        told = [line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: ")]
    assert "".join(json.loads(one)["text"] for one in told[:-1]) == log
    again = finished(building, building.post("/v1/builds", json={"agent": first["agent"]}))
    assert (again["image"], again["cached"]) == (first["image"], True)
    (repository / "Dockerfile").write_text("ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nRUN echo another\n")
    git = ["git", "-C", str(repository), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run([*git, "commit", "-q", "-a", "-m", "Change it"], check=True)
    moved = finished(building, building.post("/v1/builds", json={"agent": f"repo:{repository}@main"}))
    assert moved["agent"] != first["agent"]
    for made in (first, moved):
        subprocess.run(["docker", "image", "rm", "-f", made["image"]], capture_output=True)


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/experiments"])
def test_a_run_of_a_branch_uses_its_current_commit(local: LocalServer, repository: Path, path: str) -> None:
    git = ["git", "-C", str(repository), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    agent, named = f"repo:{repository}@main", []
    headers = {"Authorization": f"Bearer {local.token}"}
    with httpx.Client(base_url=local.url, headers=headers, timeout=60) as admin:
        for number in range(2):
            subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", f"Change {number}"], check=True)
            body = (
                {"task": "digits", "agent": agent} if path == "/v1/runs" else {"tasks": ["digits"], "agents": [agent]}
            )
            answer = admin.post(path, json=body)
            assert answer.status_code == 201, answer.text
            named.append((answer.json() if path == "/v1/runs" else answer.json()["runs"][0])["agent"])
            head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
            assert named[-1] == f"repo:{repository}@{head}"
    assert named[0] != named[1]


def test_a_queued_build_keeps_its_request(local: LocalServer, member: httpx.Client) -> None:
    asked = {"agent": "command", "options": {"command": "true"}}
    answer = member.post("/v1/builds", json=asked, headers={"Idempotency-Key": "b"})
    again = member.post("/v1/builds", json=asked, headers={"Idempotency-Key": "b"})
    assert (answer.status_code, answer.json()) == (202, again.json())
    found = answer.json()["id"]
    with local.service.database.reading() as session:
        assert session.get_one(Job, found).kind == "build"
        assert len(session.scalars(select(BuildRow)).all()) == 1
    log = member.get(f"/v1/builds/{found}/log")
    assert log.json()["type"] == "urn:mleredux:problem:not-yet"
    with httpx.Client(
        base_url=local.url, headers={"Authorization": f"Bearer {local.user('mallory')}"}, timeout=60
    ) as stranger:
        assert stranger.get(f"/v1/builds/{found}").status_code == 404
        assert stranger.get(f"/v1/builds/{found}/log").status_code == 404
        assert stranger.get("/v1/builds").json()["items"] == []


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"agent": "no-such-agent"}, 404),
        ({"agent": "dummy", "sandbox": "process"}, 403),  # the quota of a user has containers only
        ({"agent": "command", "sandbox": "moon"}, 404),
        ({"agent": "dummy", "options": {"nothing": 1}}, 422),
        ({"agent": "repo:/etc"}, 403),
        ({"agent": "dummy", "unknown": 1}, 422),
        ({"agent": "a\nb"}, 422),
    ],
)
def test_impossible_builds_are_refused_immediately(member: httpx.Client, asked: dict[str, Any], status: int) -> None:
    assert member.post("/v1/builds", json=asked).status_code == status


REFUSED = [
    "repo:.",
    "repo:/srv/agents/x",
    "repo:~/agent",
    "repo:../agent",
    "repo:file:///etc",
    "repo:http://93.184.216.34/x.git",
    "repo:git://93.184.216.34/x.git",
    "repo:ssh://git@93.184.216.34/x.git",
    "repo:git@93.184.216.34:team/x.git",
    "repo:https://user:password@93.184.216.34/x.git",
    "repo:https://token@93.184.216.34/x.git",
    "repo:https://93.184.216.34:8443/x.git",
    "repo:https://93.184.216.34:99999/x.git",
    "repo:https://127.0.0.1/x.git",
    "repo:https://localhost/x.git",
    "repo:https://2130706433/x.git",
    "repo:https://0x7f.1/x.git",
    "repo:https://[::1]/x.git",
    "repo:https://[::ffff:127.0.0.1]/x.git",
    "repo:https://[64:ff9b::a00:1]/x.git",
    "repo:https://[2002:a00:1::]/x.git",
    "repo:https://169.254.169.254/latest/meta-data",
    "repo:https://10.0.0.1/x.git",
    "repo:https://192.168.1.1/x.git",
    "repo:https://0.0.0.0/x.git",
    "repo:https://224.0.0.1/x.git",
    "repo:https:///x.git",
    "repo:https://host.invalid/x.git",
    "repo:https://good.example\\@127.0.0.1/x.git",
    "repo:https://93.184.216.34/x y.git",
    "repo:--upload-pack=touch /tmp/x",
    "repo:ext::sh -c true",
    "repo:",
    "mlebench:/srv/agents#x",
    "mlebench:aide/dev",
    "other:thing",
]


@pytest.mark.parametrize("reference", REFUSED)
def test_references_into_the_server_or_its_network_are_refused(local: LocalServer, reference: str) -> None:
    member, admin = local.caller("member"), local.caller("admin")
    with pytest.raises(Problem) as refused:
        check_agent_reference(member, reference, HERE)
    assert refused.value.slug == "forbidden"
    assert "password" not in refused.value.detail and "token@" not in refused.value.detail
    check_agent_reference(admin, reference, HERE)


@pytest.mark.parametrize(
    "reference",
    ["dummy", "repo:https://93.184.216.34/team/agent.git@v1.2#agents/fast", "repo:https://[2606:4700::1]/x.git@a/b"],
)
def test_public_repositories_and_installed_agents_are_accepted(local: LocalServer, reference: str) -> None:
    check_agent_reference(local.caller("member"), reference, HERE)
    check_agent_reference(local.caller("member"), "mlebench:aide/dev@123", HERE, known={"mlebench:aide/dev"})


def test_only_listed_hosts_are_allowed(local: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    listed, member = Settings(runs_dir=Path("runs"), repo_hosts=("git.example.org",)), local.caller("member")
    for allowed in ("https://git.example.org/x.git", "https://GIT.example.org:8443/x", "ssh://git@git.example.org/x"):
        check_agent_reference(member, f"repo:{allowed}", listed)
    check_agent_reference(member, "repo:git@git.example.org:team/x.git", listed)
    for bad in ("https://93.184.216.34/x.git", "https://git.example.org.evil.example/x", "git@evil.example:x.git"):
        with pytest.raises(Problem):
            check_agent_reference(member, f"repo:{bad}", listed)

    def both(*_arguments: Any, **_more: Any) -> list[Any]:
        return [(0, 0, 0, "", ("93.184.216.34", 443)), (0, 0, 0, "", ("10.0.0.1", 443))]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    with pytest.raises(Problem, match="private network"):
        check_address("https://two-faced.example/x.git", HERE)


@pytest.mark.parametrize(
    ("agent", "options"),
    [
        ("command", {"command": "true", "context": "/etc"}),
        ("command", {"command": "true", "image": "mleredux/somebody-elses-agent"}),
        ("command", {"command": "true", "install": "npm:/srv/secret"}),
        ("command", {"command": "true", "install": "npm:./package.tgz"}),
        ("command", {"command": "true", "install": "npm:x@file:/srv/secret"}),
        ("command", {"command": "true", "install": "apt:./x.deb"}),
        ("command", {"command": "true", "install": "pip:x@file:///srv==1"}),
        ("command", {"command": "true", "install": "pip:--index-url=http://10.0.0.1/"}),
        ("mlagentbench", {"source": "https://127.0.0.1/x.tar.gz"}),
        ("mlagentbench", {"source": "https://user:password@93.184.216.34/x.tar.gz"}),
    ],
)
def test_options_that_read_the_server_are_refused(local: LocalServer, agent: str, options: dict[str, Any]) -> None:
    with pytest.raises(Problem) as refused:
        check_agent(local.service, local.caller("member"), agent, options)
    assert refused.value.slug == "forbidden"
    check_agent(local.service, local.caller("admin"), agent, options)


def test_options_that_do_not_read_the_server_are_accepted(local: LocalServer) -> None:
    install = "npm:@openai/codex@0.50.0; pip:rich[jupyter]==14.0.0; apt:git=1:2.47.3-0+deb13u1"
    for agent, options in (
        ("command", {"command": "true", "install": install, "libraries": "tabular; statsmodels==0.14.5"}),
        ("command", {"recipe": "codex", "model": "x"}),
        ("mlagentbench", {"source": "https://93.184.216.34/x.tar.gz", "libraries": "text"}),
        ("aide", {}),
        ("baseline", {"folds": 3}),
    ):
        check_agent(local.service, local.caller("member"), agent, options)
    offered = local.service.settings.model_copy(update={"agent_images": ("ghcr.io/team/*",)})
    service = type(local.service)(**{**vars(local.service), "settings": offered})
    check_agent(service, local.caller("member"), "command", {"command": "true", "image": "ghcr.io/team/agent:1"})


def test_a_repository_gets_no_variables_of_the_server(local: LocalServer, repository: Path) -> None:
    from mleredux_server.runs.references import check_build

    catalogue, reference = local.service.catalogue, f"repo:{repository}@main"
    with pytest.raises(Problem, match="DATABASE_PASSWORD"):
        check_build(catalogue, HERE, reference, {})
    check_build(catalogue, HERE.model_copy(update={"agent_variables": ("DATABASE_PASSWORD",)}), reference, {})


@pytest.mark.parametrize("agent", ["repo:/etc", "repo:https://127.0.0.1/x.git"])
def test_runs_and_experiments_are_checked_in_the_same_way(member: httpx.Client, agent: str) -> None:
    run = member.post("/v1/runs", json={"task": "digits", "agent": agent})
    experiment = member.post("/v1/experiments", json={"tasks": ["digits"], "agents": ["dummy", agent]})
    for answer in (run, experiment):
        assert (answer.status_code, answer.json()["type"]) == (403, "urn:mleredux:problem:forbidden")
