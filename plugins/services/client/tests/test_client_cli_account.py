"""Who one is on a server: tokens that are kept safely, and accounts made over HTTP."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mleredux_testing as testing
import pytest
from mleredux.errors import MlereduxError
from mleredux_client.cli.servers import check_token, clean_url, in_the_clear, keep_token, token_of
from mleredux_support.commands import Answer, StandIn, answer, mleredux, page, problem

TOKEN = "mlr_only-for-this-test"
ME = {
    "user": {"id": "u1", "name": "ann", "admin": True},
    "token": {"id": "t1", "name": "laptop", "scopes": ["read", "run"], "expires_at": None},
    "projects": [{"id": "p1", "name": "ann", "usage": {"running_runs": 1}, "quota": {"concurrent_runs": 4}}],
    "default_project": "p1",
}


@pytest.fixture
def there() -> Iterator[StandIn]:
    server = StandIn()
    server.answers["GET /v1/me"] = lambda asked: (
        answer(ME)
        if asked.headers.get("authorization") == f"Bearer {TOKEN}"
        else problem(401, "unauthenticated", "The token is not known.")
    )
    yield server
    server.close()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("MLEREDUX_TOKEN", raising=False)
    monkeypatch.delenv("MLEREDUX_SERVER", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "config" / "mleredux" / "servers.json"


def test_a_token_is_tried_and_kept_where_only_its_owner_reads_it(there: StandIn, home: Path) -> None:
    told = mleredux("login", f"{there.url}/v1/", "--token-stdin", stdin=f"{TOKEN}\n")
    assert told.code == 0 and f"Logged in to {there.url} as ann" in told.err and TOKEN not in told.out + told.err
    assert stat.S_IMODE(home.stat().st_mode) == 0o600 and stat.S_IMODE(home.parent.stat().st_mode) == 0o700
    assert "ann (admin)" in mleredux("whoami", "--server", f"{there.url}/").out
    assert "Removed the token" in mleredux("logout", "--server", there.url).err
    assert TOKEN not in home.read_text()
    assert f"mleredux login {there.url}" in mleredux("whoami", "--server", there.url).err


def test_a_token_that_is_not_known_is_not_kept(there: StandIn, home: Path) -> None:
    told = mleredux("login", there.url, "--token-stdin", stdin="mlr_wrong")
    assert told.code == 1 and "The token is not known." in told.err and not home.exists()
    assert "mlr_wrong" not in told.err


@pytest.mark.parametrize("text", ["", "two words", "line\nbreak", "ümlaut", "x" * 2000])
def test_what_is_no_token_is_sent_nowhere(there: StandIn, text: str) -> None:
    told = mleredux("login", there.url, "--token-stdin", stdin=text)
    assert told.code == 1 and "That is not a token." in told.err and there.asked == []
    with pytest.raises(MlereduxError):
        check_token(text)


def test_nobody_is_asked_where_nobody_can_be(there: StandIn) -> None:
    told = mleredux("login", there.url)
    assert told.code == 2 and "--token-stdin" in told.err
    assert mleredux("login").code == mleredux("logout").code == 2


def test_a_token_goes_only_to_its_own_server(there: StandIn, home: Path) -> None:
    keep_token("https://other.example", "mlr_of-another")
    told = mleredux("whoami", "--server", there.url)
    assert told.code == 1 and there.asked == []
    assert token_of("https://other.example") == "mlr_of-another"
    assert token_of("http://other.example") is None


@pytest.mark.parametrize("how", ["readable", "damaged", "odd"])
def test_a_file_that_can_not_be_trusted_is_not_used(there: StandIn, home: Path, how: str) -> None:
    keep_token(there.url, TOKEN)
    if how == "readable":
        home.chmod(0o644)
    else:
        home.write_text("{" if how == "damaged" else json.dumps({"servers": {there.url: TOKEN}}))
    told = mleredux("whoami", "--server", there.url)
    assert told.code == 1 and str(home) in told.err and TOKEN not in told.err and there.asked == []


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("HTTP://Example.ORG:80/", "http://example.org"),
        ("https://example.org/mleredux/v1/", "https://example.org/mleredux"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_one_server_has_one_name(text: str, url: str) -> None:
    assert clean_url(text) == url


@pytest.mark.parametrize(
    "text",
    [
        "example.org:8000",
        "ftp://example.org",
        "http://",
        "http://a:b:c",
        "http://x/?token=mlr_1",
        "http://x\x1b[2J/",
        "",
    ],
)
def test_what_is_no_url_is_said(text: str) -> None:
    with pytest.raises(MlereduxError, match=r"is not a server's URL|has a query"):
        clean_url(text)


def test_a_password_in_a_url_is_not_repeated() -> None:
    with pytest.raises(MlereduxError) as refused:
        clean_url("https://ann:hunter2@example.org")
    assert "hunter2" not in str(refused.value)


def test_sending_a_token_in_the_clear_is_warned_of() -> None:
    assert in_the_clear("http://example.org") and not in_the_clear("https://example.org")
    assert not in_the_clear("http://127.0.0.1:8000") and not in_the_clear("http://[::1]:8000")


@pytest.fixture
def admin(there: StandIn, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    monkeypatch.setenv("MLEREDUX_TOKEN", TOKEN)
    monkeypatch.setenv("MLEREDUX_SERVER", there.url)
    there.answers["GET /v1/users"] = page({"id": "u1", "name": "ann"}, {"id": "u2", "name": "bob", "admin": False})
    there.answers["GET /v1/projects"] = page({"id": "p1", "name": "ann"}, {"id": "p2", "name": "lab", "role": None})
    return there


def test_a_new_token_is_all_that_stands_on_stdout(admin: StandIn) -> None:
    made = {"id": "t2", "name": "ci", "scopes": ["read"], "expires_at": "2026-12-21T00:00:00Z", "token": "mlr_new"}
    admin.answers["POST /v1/tokens"] = answer(made, 201)
    arguments = ("--name", "ci", "--scope", "read", "--expires-in", "30d", "--user", "bob", "--project", "lab")
    told = mleredux("account", "token", "create", *arguments)
    assert told.code == 0 and told.out == "mlr_new\n" and "not be shown again" in told.err
    body = {"name": "ci", "scopes": ["read"], "expires_in": 2592000, "user": "u2", "project": "p2"}
    assert admin.bodies("POST", "/v1/tokens") == [body]


def test_tokens_are_listed_and_revoked(admin: StandIn) -> None:
    admin.answers["GET /v1/tokens"] = page({"id": "t1", "name": "ci", "scopes": ["read", "run"], "expires_at": None})
    admin.answers["DELETE /v1/tokens/t1"] = Answer(204, b"", {})
    assert "read,run" in mleredux("account", "token", "list").out
    assert mleredux("account", "token", "revoke", "t1").out == "Revoked t1.\n"


def test_webhooks_are_made_tried_and_deleted(admin: StandIn) -> None:
    hook = {"id": "w1", "project": "p2", "url": "https://ci.example/x", "events": ["run.ended"], "disabled_at": None}
    message = {"id": "d1", "event": "test", "attempts": 1, "status": 204, "message": None, "delivered_at": "now"}
    admin.answers["POST /v1/webhooks"] = answer({**hook, "secret": "whsec_new"}, 201)
    admin.answers["GET /v1/webhooks"] = page(hook)
    admin.answers["POST /v1/webhooks/w1/test"] = answer(message, 202)
    admin.answers["GET /v1/webhooks/w1/deliveries"] = page(message)
    admin.answers["DELETE /v1/webhooks/w1"] = Answer(204, b"", {})
    told = mleredux("account", "webhook", "create", hook["url"], "--event", "run.ended", "--project", "lab")
    assert told.out == "whsec_new\n" and "not be shown again" in told.err
    asked = {"url": hook["url"], "events": ["run.ended"], "project": "lab"}
    assert admin.bodies("POST", "/v1/webhooks") == [asked]
    assert "https://ci.example/x" in mleredux("account", "webhook", "list").out
    assert "d1 is sent" in mleredux("account", "webhook", "test", "w1").out
    assert "204" in mleredux("account", "webhook", "deliveries", "w1").out
    assert mleredux("account", "webhook", "delete", "w1").out == "Deleted w1.\n"


def test_users_are_added_listed_and_removed(admin: StandIn) -> None:
    admin.answers["POST /v1/users"] = answer({"id": "u3", "name": "cyd", "admin": False}, 201)
    admin.answers["DELETE /v1/users/u2"] = Answer(204, b"", {})
    assert "u3 is cyd." in mleredux("account", "user", "create", "cyd").out
    assert [row["name"] for row in json.loads(mleredux("account", "user", "list", "--json").out)] == ["ann", "bob"]
    assert mleredux("account", "user", "delete", "bob").code == 2
    assert mleredux("account", "user", "delete", "bob", "--yes").code == 0
    assert "There is no user 'eve'." in mleredux("account", "user", "delete", "eve", "--yes").err


def test_quotas_are_changed_in_what_is_named(admin: StandIn) -> None:
    changed: dict[str, Any] = {"id": "p2", "name": "lab", "usage": {"memory_mb": 5}, "quota": {"memory_mb": 16384}}
    admin.answers["PATCH /v1/projects/p2"] = answer(changed)
    told = mleredux("account", "project", "set-quota", "lab", "--memory", "16g", "--unlimited", "gpus", "--cpus", "0")
    assert told.code == 0 and "16384" in told.out
    assert admin.bodies("PATCH", "/v1/projects/p2") == [{"quota": {"cpus": 0, "memory_mb": 16384, "gpus": None}}]
    assert mleredux("account", "project", "set-quota", "lab").code == 2


def test_members_come_and_go(admin: StandIn) -> None:
    admin.answers["PUT /v1/projects/p2/members/u2"] = Answer(204, b"", {})
    admin.answers["DELETE /v1/projects/p2/members/u2"] = Answer(204, b"", {})
    assert mleredux("account", "project", "add-member", "lab", "bob", "--role", "owner").code == 0
    assert admin.bodies("PUT", "/v1/projects/p2/members/u2") == [{"role": "owner"}]
    assert mleredux("account", "project", "remove-member", "lab", "bob").code == 0


def test_use_and_quota_stand_side_by_side(admin: StandIn) -> None:
    lines = [line.split() for line in mleredux("account", "usage").out.splitlines()]
    assert ["ann", "concurrent_runs", "1", "4"] in lines


def test_accounts_need_a_server() -> None:
    told = mleredux("account", "usage")
    assert told.code == 2 and "Specify a server with --server URL (or MLEREDUX_SERVER)." in told.err


def test_the_plugin_keeps_the_contract() -> None:
    testing.check_plugin("client")


def test_finding_the_commands_imports_nothing_of_http() -> None:
    program = (
        "import sys; from mleredux._core.plugins import Catalogue; found = Catalogue().entries('commands');"
        "assert 'runs wait' in found and 'login' in found;"
        "print([name for name in ('httpx', 'pydantic', 'mleredux_client') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"
