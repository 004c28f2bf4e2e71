"""What users grant to agents, within what the administrator allows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click.testing
import httpx
import pytest
from mleredux_server.cli.serve import command
from mleredux_support.server_local import LocalServer

HOSTS = ("data.example.org", "*.wide.example.org:8443", "build:files.example.org", "lab.example.org=10.0.0.7")


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-planted")
        allowed: dict[str, Any] = {"agent_hosts": HOSTS, "agent_variables": ("TEAM_TOKEN", "OPENAI_API_KEY")}
        allowed |= {"agent_images": ("ghcr.io/team/*",), "agent_llm_fields": ("tools.web_?", "metadata")}
        allowed |= {"agent_llm_models": ("big-*",)}
        with LocalServer(Path(tmp_path_factory.mktemp("grants")) / "runs", **allowed).running() as running:
            yield running


@pytest.fixture(scope="module")
def ann(local: LocalServer) -> httpx.Client:
    return httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {local.user('ann')}"}, timeout=60)


def asked(ann: httpx.Client, grants: dict[str, list[str]]) -> httpx.Response:
    return ann.post("/v1/runs", json={"task": "digits", "agent": "dummy", "sandbox": "docker", "grants": grants})


def test_a_run_gets_what_its_user_grants_and_the_administrator_allows(local: LocalServer, ann: httpx.Client) -> None:
    grants = {
        "hosts": ["data.example.org:443", "x.wide.example.org:8443", "lab.example.org=10.0.0.7"],
        "build_hosts": ["files.example.org"],
        "variables": ["TEAM_TOKEN"],
        "llm_fields": ["tools.web_?", "metadata", "tools.web_x"],
        "llm_models": ["big-1"],
    }
    made = asked(ann, grants)
    assert made.status_code == 201, made.text
    spec = local.service.store.get(made.json()["id"]).spec
    assert spec.grants.model_dump(mode="json", exclude={"images", "tools"}) == grants
    nothing = local.service.store.get(asked(ann, {}).json()["id"]).spec.grants
    assert not (nothing.hosts or nothing.build_hosts or nothing.variables or nothing.llm_fields)
    arm = {"agent": "dummy", "sandbox": "docker", "grants": {"hosts": ["data.example.org"]}}
    plan = {"experiment": {"name": "granted", "tasks": ["digits"]}, "arms": {"a": arm}}
    for body in (
        {"plan": plan},
        {"tasks": ["digits"], "agents": ["dummy"], **{k: arm[k] for k in ("sandbox", "grants")}},
    ):
        experiment = ann.post("/v1/experiments", json=body)
        assert experiment.status_code == 201, experiment.text
        [run] = experiment.json()["runs"]
        assert local.service.store.get(run["id"]).spec.grants.hosts == ("data.example.org",)


@pytest.mark.parametrize(
    "grants",
    [
        {"hosts": ["files.example.org"]},  # of builds only
        {"build_hosts": ["data.example.org"]},  # of runs only
        {"hosts": ["data.example.org=169.254.169.254"]},
        {"hosts": ["data.example.org:22"]},
        {"hosts": ["*.example.org"]},
        {"hosts": ["x.wide.example.org"]},  # another port
        {"hosts": ["wide.example.org:8443"]},
        {"hosts": ["lab.example.org=10.0.0.8"]},
        {"hosts": ["10.0.0.7"]},
        {"hosts": ["data.example.org.evil.test"]},
        {"variables": ["OPENAI_API_KEY"]},  # a key of the gateway, even though it is listed
        {"variables": ["DATABASE_PASSWORD"]},
        {"variables": ["MLEREDUX_DATABASE"]},
        {"images": ["ghcr.io/*"]},
        {"llm_fields": ["tools.web_*"]},  # wider than what is allowed, though `?` stands for `*`
        {"llm_fields": ["tools.*"]},
        {"llm_fields": ["tools.web_fetch"]},
        {"llm_models": ["big-1", "bigger"]},
        {"llm_models": ["*"]},
        {"llm_models": ["big-search-1"]},  # must be named exactly
        {"tools": ["rows"]},
        {"tools": ["/etc"]},
    ],
)  # fmt: skip
@pytest.mark.attack
def test_nothing_beyond_what_the_administrator_allows_is_granted(
    local: LocalServer, ann: httpx.Client, grants: dict[str, list[str]]
) -> None:
    before = len(list(local.service.store.ids()))
    arm = {"agent": "dummy", "sandbox": "docker", "grants": grants}
    plan = {"experiment": {"name": "refused", "tasks": ["digits"]}, "arms": {"a": arm}}
    for answer in (asked(ann, grants), ann.post("/v1/experiments", json={"plan": plan})):
        assert answer.status_code == 403 and "can't be granted on this server" in answer.json()["detail"], answer.text
    assert len(list(local.service.store.ids())) == before


@pytest.mark.parametrize(
    "grants",
    [{"hosts": ["http://x/"]}, {"llm_fields": ["a b"]}, {"llm_models": ["a b"]}, {"variables": ["1"]}, {"host": ["x"]}],
)
@pytest.mark.attack
def test_grants_in_a_wrong_form_are_refused(ann: httpx.Client, grants: dict[str, list[str]]) -> None:
    assert asked(ann, grants).status_code == 422


def test_the_server_does_not_start_with_wrong_options(tmp_path: Path) -> None:
    def started(*options: str) -> click.testing.Result:
        return click.testing.CliRunner().invoke(command, ["--runs-dir", str(tmp_path / "runs"), *options], obj=None)

    ended = started("--agent-host", "http://x/")
    assert ended.exit_code == 1 and "is not a host" in str(ended.exception), ended.output
    ended = started("--store", "s3://bucket/prefix")
    assert ended.exit_code == 2 and "--store requires --executor" in ended.output, ended.output
