"""Keys of secrets are replaced: everything that was encrypted is readable with the new key alone, nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from mleredux_server.accounts.passed_secrets import keep_values, values_of
from mleredux_server.accounts.secrets import set_secret
from mleredux_server.accounts.vault import KEY_VARIABLE, Vault
from mleredux_server.cli.server import command
from mleredux_server.database.tables import Secret, Webhook
from mleredux_server.protocol.problems import Problem
from mleredux_server.service import Service
from mleredux_support.server_local import LocalServer
from sqlalchemy import select


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalServer]:
    with LocalServer(tmp_path / "runs").running() as server:
        yield server


def with_key(service: Service, monkeypatch: pytest.MonkeyPatch, key: str | None) -> Service:
    """The service as it starts with a key."""
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    if key is not None:
        monkeypatch.setenv(KEY_VARIABLE, key)
    other = replace(service)
    other.__dict__["vault"] = Vault()
    return other


def everything(service: Service) -> list[str]:
    """Decrypt all that is encrypted."""
    with service.database.reading() as session:
        found = [service.vault.open(f"{one.owner}:{one.name}", one.value) for one in session.scalars(select(Secret))]
        hooks = session.scalars(select(Webhook)).all()
        found += [service.vault.open(f"{one.project_id}:{one.id}", one.secret) for one in hooks]
    return sorted([*found, *values_of(service, "some-run")])


@pytest.mark.parametrize("former", [None, "old", "old key with spaces"])
def test_a_key_is_replaced_and_the_former_one_is_needed_no_more(
    local: LocalServer, monkeypatch: pytest.MonkeyPatch, former: str | None
) -> None:
    service = with_key(local.service, monkeypatch, former)
    caller = local.caller("admin")
    set_secret(service, caller, "HF_TOKEN", "one", None)
    keep_values(service, "some-run", ["two"])
    with service.database.writing() as session:
        home = next(iter(caller.projects))
        hook = Webhook(id="whk_1", project_id=home, user_id=caller.user_id, url="https://x.example", events=[])
        hook.secret = service.vault.lock(f"{home}:whk_1", "three")
        session.add(hook)
    assert everything(service) == ["one", "three", "two"]
    monkeypatch.setenv(KEY_VARIABLE, f"new {former or 'salt'}")
    result = CliRunner().invoke(command, ["rotate-key", "--runs-dir", str(service.store.path), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output) == {"secrets": 1, "webhooks": 1, "runs": 1}
    assert everything(with_key(local.service, monkeypatch, "new")) == ["one", "three", "two"]
    with pytest.raises(Problem, match="encrypted with another key"):
        everything(with_key(local.service, monkeypatch, former))


def test_nothing_changes_if_a_former_key_is_missing(local: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    service = with_key(local.service, monkeypatch, "old")
    set_secret(service, local.caller("admin"), "A", "one", None)
    keep_values(with_key(local.service, monkeypatch, "other"), "some-run", ["two"])
    monkeypatch.setenv(KEY_VARIABLE, "new old")
    result = CliRunner().invoke(command, ["rotate-key", "--runs-dir", str(service.store.path)])
    assert result.exit_code != 0 and "another key" in str(result.exception)
    for key in ("old", "other"):
        monkeypatch.setenv(KEY_VARIABLE, key)
        kept = with_key(local.service, monkeypatch, key)
        if key == "other":
            assert values_of(kept, "some-run") == {"two"}
        else:
            with kept.database.reading() as session:
                [secret] = session.scalars(select(Secret))
                assert kept.vault.open(f"{secret.owner}:{secret.name}", secret.value) == "one"
