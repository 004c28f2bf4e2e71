"""Whose secrets a run gets, what they can't change, and that their former values stay masked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from mleredux._core.sandboxes.variables import passed_variables
from mleredux.plugin.agent import Grants
from mleredux.plugin.artifact import Cause, Run
from mleredux.plugin.host import Pipeline, provide_secrets
from mleredux_gateway.endpoint import open_gateway
from mleredux_server.accounts.accounts import make_token
from mleredux_server.accounts.passed_secrets import FOLDER, keep_values, values_of
from mleredux_server.accounts.secrets import delete_secret, secrets_of, set_secret
from mleredux_server.accounts.vault import Vault
from mleredux_server.database.tables import Job, Member, Project, RunRow, User
from mleredux_server.files.masks import Masks
from mleredux_server.protocol.problems import Problem
from mleredux_server.runs.lookup import run_of
from mleredux_server.runs.summary import facts_of
from mleredux_server.scheduler.actions import delete_run
from mleredux_server.scheduler.adoption import adopted
from mleredux_server.scheduler.pool import Pool
from mleredux_server.scheduler.tally import Tally
from mleredux_server.settings import Settings
from mleredux_server.work import read_request
from mleredux_support.server_local import LocalServer
from sqlalchemy import select

OLD, NEW = "planted-former-0123456789", "planted-later-9876543210"
ANNS, BOBS, SHARED = "token-of-ann-0123456789", "token-of-bob-0123456789", "token-of-the-team-0123456789"


@pytest.fixture(scope="module")
def clients(local: LocalServer) -> Iterator[dict[str, httpx.Client]]:
    """Ann and bob, each with a secret, who share a project that has one of the same name; ann's token for it alone."""
    tokens = {name: local.user(name) for name in ("ann", "bob")}
    with local.service.database.writing() as session:
        ann, bob = (session.scalars(select(User).where(User.name == name)).one() for name in ("ann", "bob"))
        project = session.scalars(select(Project).where(Project.name == "ann")).one()
        session.add(Member(project_id=project.id, user_id=bob.id, role="member"))
        tokens["bound"] = make_token(session, ann, "ci", ["read", "run"], project_id=project.id)[1]
    for name, value in (("ann", ANNS), ("bob", BOBS)):
        set_secret(local.service, local.caller(name), "HF_TOKEN", value, None)
    set_secret(local.service, local.caller("ann"), "HF_TOKEN", SHARED, "ann")
    opened = {
        name: httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
        for name, token in tokens.items()
    }
    yield opened
    for client in opened.values():
        client.close()


def create(client: httpx.Client, **asked: Any) -> str:
    request = {"task": "digits", "agent": "dummy", "sandbox": "docker", "project": "ann", "secrets": ["HF_TOKEN"]}
    answer = client.post("/v1/runs", json={**request, **asked})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def lent(local: LocalServer, run_id: str) -> str | None:
    """The value that a worker would get."""
    with local.service.database.reading() as session:
        return secrets_of(local.service, session.get_one(RunRow, run_id), session).get("HF_TOKEN")


def retried(local: LocalServer, client: httpx.Client, run_id: str) -> str:
    """The new run of a retry, of one that failed by its agent."""
    assert Run(local.service.store.path / run_id).give_up(Cause.AGENT_CRASHED, "It failed.")
    local.settle(run_id, "failed")
    answer = client.post(f"/v1/runs/{run_id}/retry")
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_what_a_user_lends_does_not_change_where_the_gateway_sends_keys(
    local: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_API_KEY", "MLEREDUX_GATEWAY_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "empty"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-server-0123456789")
    (tmp_path / "mleredux").mkdir()
    (tmp_path / "mleredux" / "gateway.toml").write_text(
        '[upstreams.x]\nprotocol = "openai"\nbase_url = "https://evil.example/v1"\nkey_env = "OPENAI_API_KEY"\n'
    )
    agent, run = local.service.catalogue.agent("dummy"), local.make_run(network="gateway")
    evil = {
        "OPENAI_BASE_URL": "https://evil.example/v1",
        "OPENAI_API_BASE": "https://evil.example/v1",
        "XDG_CONFIG_HOME": str(tmp_path),
        "MLEREDUX_GATEWAY_CONFIG": str(tmp_path / "mleredux" / "gateway.toml"),
    }
    for more, key in ({}, "sk-of-the-server-0123456789"), ({"OPENAI_API_KEY": "sk-of-ann"}, "sk-of-ann"):
        with provide_secrets({**evil, **more}):
            gateway = open_gateway(run, agent, tmp_path / "socket")
        gateway.close()
        [upstream] = gateway._proxy._config.upstreams
        assert (upstream.config.base_url, upstream.key) == ("https://api.openai.com/v1", key)


def test_a_lent_key_does_not_uncover_the_servers_own_by_another_name(
    local: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "TEAM_LLM"):
        monkeypatch.setenv(name, "sk-of-the-server-0123456789")
    known = {"OPENAI_API_KEY": "sk-of-ann", "TEAM_LLM": "sk-of-the-server-0123456789", "TEAM_PLACE": "here"}
    grants = Grants(variables=("TEAM_LLM", "TEAM_PLACE"))
    passed = passed_variables(local.service.catalogue.agent("dummy"), grants, known, {"OPENAI_API_KEY"})
    assert passed == {"TEAM_PLACE": "here"}


@pytest.mark.parametrize(
    "name",
    [
        *("XDG_CONFIG_HOME", "OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "HTTPS_PROXY", "ALL_PROXY"),
        *("GIT_CONFIG_COUNT", "GIT_SSH_COMMAND", "PYTHONSTARTUP", "LD_AUDIT", "MLEREDUX_GATEWAY_CONFIG", "HOME"),
    ],
)
def test_names_that_redirect_programs_are_reserved(local: LocalServer, name: str) -> None:
    with pytest.raises(Problem, match="can't be the name of a secret"):
        set_secret(local.service, local.caller("admin"), name, "x" * 20, None)


def test_other_names_are_not_reserved(local: LocalServer) -> None:
    for name in ("GIT_TOKEN", "OPENAI_API_KEY", "LITELLM_PROXY_API_KEY", "HOME_TOKEN"):
        set_secret(local.service, local.caller("admin"), name, "x" * 20, None)


def test_workers_get_none_of_the_servers_own_secrets(local: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    own = ("MLEREDUX_OIDC_SECRET", "MLEREDUX_SECRETS_KEY", "MLEREDUX_SERVE_TOKEN", "MLEREDUX_DATABASE", "PGPASSWORD")
    own += ("MLEREDUX_TOKEN", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
    for name in own:
        monkeypatch.setenv(name, "planted-of-the-server")
    made = Settings(runs_dir=local.service.settings.runs_dir, oidc_secret="planted-of-the-server")
    pool = Pool(made, local.service.catalogue, lambda: None, Tally())
    assert b"planted-of-the-server" not in pool._hello
    worker = pool._start("run")
    try:
        known = psutil.Process(worker.pid).environ()
        assert "PATH" in known and "planted-of-the-server" not in known.values()
    finally:
        worker.process.kill()
        worker.process.wait(60)


def test_a_token_for_a_project_lends_the_projects_secret(local: LocalServer, clients: dict[str, httpx.Client]) -> None:
    assert lent(local, create(clients["ann"])) == ANNS
    bound = create(clients["bound"])
    assert lent(local, bound) == SHARED
    made = clients["bound"].post(
        "/v1/experiments",
        json={"tasks": ["digits"], "agents": ["dummy"], "sandbox": "docker", "project": "ann", "secrets": ["HF_TOKEN"]},
    )
    assert lent(local, made.json()["runs"][0]["id"]) == SHARED
    assert lent(local, retried(local, clients["ann"], bound)) == SHARED, "what was asked does not change"


def test_a_retry_of_what_others_created_lends_no_secrets_of_ones_own(
    local: LocalServer, clients: dict[str, httpx.Client]
) -> None:
    assert lent(local, retried(local, clients["ann"], create(clients["ann"]))) == ANNS
    assert lent(local, retried(local, clients["bound"], create(clients["ann"]))) == SHARED
    by_bob = retried(local, clients["bob"], create(clients["ann"]))
    assert lent(local, by_bob) == SHARED
    assert lent(local, retried(local, clients["bob"], by_bob)) == SHARED
    delete_secret(local.service, local.caller("ann"), "HF_TOKEN", "ann")
    try:
        run_id = create(clients["ann"])
        assert Run(local.service.store.path / run_id).give_up(Cause.AGENT_CRASHED, "It failed.")
        local.settle(run_id, "failed")
        answer = clients["bob"].post(f"/v1/runs/{run_id}/retry")
        assert answer.status_code == 404 and answer.json()["detail"] == "The project has no secret HF_TOKEN."
    finally:
        set_secret(local.service, local.caller("ann"), "HF_TOKEN", SHARED, "ann")


def test_a_run_that_another_member_resumes_gets_the_projects_secrets(
    local: LocalServer, clients: dict[str, httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mleredux_server.scheduler.actions.check_resumable", lambda *given, **how: None)

    def resumed(who: str) -> str | None:
        run_id = create(clients["ann"])
        assert Run(local.service.store.path / run_id).give_up(Cause.ENVIRONMENT_BROKE, "The engine is gone.")
        local.settle(run_id, "failed")
        answer = clients[who].post(f"/v1/runs/{run_id}/retry")
        assert answer.status_code == 202, answer.text
        return lent(local, run_id)

    assert {who: resumed(who) for who in clients} == {"ann": ANNS, "bob": SHARED, "bound": SHARED}


def test_a_build_is_lent_the_secrets_that_it_names(local: LocalServer, clients: dict[str, httpx.Client]) -> None:
    asked = {"agent": "dummy", "project": "ann", "secrets": ["HF_TOKEN"]}
    missing = clients["ann"].post("/v1/builds", json={**asked, "secrets": ["GIT_TOKEN"]})
    assert missing.status_code == 404 and "no secret GIT_TOKEN" in missing.json()["detail"]
    for who, value in ("ann", ANNS), ("bob", BOBS), ("bound", SHARED):
        made = clients[who].post("/v1/builds", json=asked)
        assert made.status_code == 202, made.text
        request = read_request(local.service.job_dir("build", made.json()["id"]))
        with local.service.database.reading() as session:
            job = session.get_one(Job, made.json()["id"])
            assert secrets_of(local.service, job, session, request=request) == {"HF_TOKEN": value}


def test_an_extension_of_what_others_created_lends_no_secrets_of_ones_own(
    local: LocalServer, clients: dict[str, httpx.Client]
) -> None:
    plan = {
        "experiment": {"name": "growing", "tasks": ["digits"], "seeds": [0]},
        "arms": {"a": {"agent": "dummy", "sandbox": "docker"}},
    }
    made = clients["ann"].post("/v1/experiments", json={"plan": plan, "project": "ann", "secrets": ["HF_TOKEN"]})
    assert made.status_code == 201, made.text
    for who, seed, value in ("bob", 1, SHARED), ("bound", 2, SHARED), ("ann", 3, ANNS):
        answer = clients[who].post(f"/v1/experiments/{made.json()['id']}/extend", json={"seeds": [seed]})
        assert answer.status_code == 201, answer.text
        [added] = [run["id"] for run in answer.json()["runs"] if run["seed"] == seed]
        assert lent(local, added) == value, who


def test_a_run_of_a_lost_database_lends_no_secrets_of_its_new_owner(
    local: LocalServer, clients: dict[str, httpx.Client]
) -> None:
    run = Run(local.service.store.path / create(clients["bob"]))
    admin = local.caller("admin")
    _, row = adopted(run, facts_of(run), admin.user_id, next(iter(admin.projects)))
    assert row["request"]["secrets"] == ["HF_TOKEN"]
    assert secrets_of(local.service, RunRow(**row)) == {}
    set_secret(local.service, admin, "HF_TOKEN", "token-of-the-admin-0123456789", None)
    assert secrets_of(local.service, RunRow(**row)) == {}


@pytest.fixture
def run_lent(local: LocalServer) -> Run:
    """A run that was lent a secret, whose agent told it."""
    admin = local.caller("admin")
    set_secret(local.service, admin, "OLD_TOKEN", OLD, None)
    run = local.make_run()
    with local.service.database.writing() as session:
        row = session.get_one(RunRow, run.id)
        row.request = {"secrets": ["OLD_TOKEN"]}
    assert keep_values(local.service, run.id, [OLD]) == set()
    run.agent_log.write_text(f"it is {OLD}\n")
    return run


def shown(local: LocalServer, run: Run) -> httpx.Response:
    headers = {"Authorization": f"Bearer {local.token}"}
    return httpx.get(f"{local.url}/v1/runs/{run.id}/logs/agent.log", headers=headers)


def test_a_replaced_or_deleted_secret_stays_masked(local: LocalServer, run_lent: Run) -> None:
    stars, admin = f"it is {'*' * len(OLD)}\n", local.caller("admin")
    set_secret(local.service, admin, "OLD_TOKEN", NEW, None)
    assert shown(local, run_lent).text == stars
    assert keep_values(local.service, run_lent.id, [NEW]) == {OLD}, "of an earlier attempt"
    delete_secret(local.service, admin, "OLD_TOKEN", None)
    run_lent.agent_log.write_text(f"it is {OLD}\n{NEW}\n")
    assert shown(local, run_lent).text == f"{stars}{'*' * len(NEW)}\n"
    seen = run_of(local.service, admin, run_lent.id)
    assert Masks(local.service).of(seen).hide(OLD.encode()) == b"*" * len(OLD), "of a server that was restarted"


def test_a_secret_that_is_lent_after_its_run_was_first_seen_is_masked(local: LocalServer) -> None:
    run, admin = local.make_run(), local.caller("admin")
    with local.service.database.writing() as session:
        session.get_one(RunRow, run.id).request = {"secrets": ["LATE_TOKEN"]}
    run.agent_log.write_text("nothing\n")
    assert shown(local, run).text == "nothing\n"
    set_secret(local.service, admin, "LATE_TOKEN", OLD, None)
    keep_values(local.service, run.id, [OLD])
    set_secret(local.service, admin, "LATE_TOKEN", NEW, None)
    run.agent_log.write_text(f"it is {OLD}\n")
    assert OLD not in shown(local, run).text


def test_the_record_is_encrypted_and_goes_with_the_run(local: LocalServer, run_lent: Run) -> None:
    [record] = (local.service.settings.state_dir / FOLDER).glob(run_lent.id)
    assert record.stat().st_mode & 0o777 == 0o600 and record.parent.stat().st_mode & 0o777 == 0o700
    assert OLD not in record.read_text() and values_of(local.service, run_lent.id) == {OLD}
    before = record.read_text()
    keep_values(local.service, run_lent.id, [OLD])
    assert record.read_text() == before, "what is known is not recorded twice"
    assert run_lent.give_up(Cause.CANCELLED, "x")
    local.settle(run_lent.id, "cancelled")
    delete_run(local.service, None, run_lent.id)
    assert not record.exists()


def test_files_are_withheld_if_their_secrets_are_not_known(
    local: LocalServer, run_lent: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLEREDUX_SECRETS_KEY", "another")
    other = replace(local.service)
    other.__dict__["vault"] = Vault()
    with pytest.raises(Problem, match="can't be shown") as refused:
        Masks(other).cover(run_of(other, local.caller("admin"), run_lent.id))
    assert "MLEREDUX_SECRETS_KEY" in str(refused.value.hint)
    assert keep_values(other, run_lent.id, [NEW]) == set(), "it can go on"
    for service in (other, local.service):
        with pytest.raises(Problem, match="can't be shown"):
            values_of(service, run_lent.id)
    assert shown(local, run_lent).status_code == 409


def test_what_an_earlier_attempt_was_lent_is_masked_at_the_end(local: LocalServer) -> None:
    run = local.make_run()
    (run.path / "logs").mkdir(exist_ok=True)
    (run.path / "logs" / "before.log").write_text(f"{OLD} {NEW}\n")
    with provide_secrets({"HF_TOKEN": NEW}, [OLD]):
        Pipeline(local.service.store, local.service.catalogue, local.service.data).execute_run(run)
    assert (run.path / "logs" / "before.log").read_text() == f"{'*' * len(OLD)} {'*' * len(NEW)}\n"
