"""Care for a service: its audit log, backups, downgrades, default quotas and service accounts."""

from __future__ import annotations

import gzip
import json
import shutil
import threading
from pathlib import Path
from typing import Any

import click.testing
import httpx
import pytest
from mleredux._core.plugins import Catalogue
from mleredux_server.cli.server import command
from mleredux_server.database import REVISIONS, Database
from mleredux_server.database import engine as engine_module
from mleredux_server.database.tables import Base, RunLabel, RunRow, User
from mleredux_server.operations.backup import backup
from mleredux_server.settings import Settings
from mleredux_support.server_local import LocalServer
from sqlalchemy import func, inspect, select, text


def invoke(*arguments: str, env: dict[str, str] | None = None, fails: bool = False) -> Any:
    """The output of `mleredux server …`."""
    ended = click.testing.CliRunner().invoke(command, [*arguments], obj=Catalogue(), env=env)
    assert (ended.exit_code != 0) == fails, ended.output + repr(ended.exception)
    return str(ended.exception) if fails else json.loads(ended.output) if "--json" in arguments else ended.output


def admin(local: LocalServer) -> httpx.Client:
    return httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {local.token}"}, timeout=30)


def test_admins_read_the_audit_log(local: LocalServer) -> None:
    with admin(local) as http:
        http.post("/v1/users", json={"name": "ann"})
        http.put("/v1/secrets/HF_TOKEN", json={"value": "hf_0123456789"})
        page = http.get("/v1/audit", params={"limit": 1}).json()
        assert page["items"][0]["action"] == "secret.set" and page["items"][0]["user"] == "admin"
        assert "hf_0123456789" not in http.get("/v1/audit").text
        after = http.get("/v1/audit", params={"cursor": page["next"]}).json()["items"]
        assert page["items"][0]["id"] not in [one["id"] for one in after]
        assert http.get("/v1/audit", params={"after": "0001-01-01T00:00:00+14:00"}).status_code == 422
        made = http.get("/v1/audit", params={"action": "user", "user": "admin"}).json()["items"]
        assert {one["action"] for one in made} == {"user.create"}
    other = {"Authorization": f"Bearer {local.user('eve')}"}
    assert httpx.get(f"{local.url}/v1/audit", headers=other).status_code == 403
    runs = str(local.service.settings.runs_dir)
    rows = invoke("audit", "--runs-dir", runs, "--action", "secret", "--since", "1h", "--json")
    assert [row["action"] for row in rows] == ["secret.set"]
    assert "user.create" in invoke("audit", "--runs-dir", runs)


def filled(local: LocalServer) -> dict[str, int]:
    """A server with something in most tables; the number of rows of each."""
    with admin(local) as http:
        for seed in range(3):
            body = {"task": "digits", "agent": "dummy", "sandbox": "process", "seed": seed, "labels": {"a": "b"}}
            assert http.post("/v1/runs", json=body, headers={"Idempotency-Key": str(seed)}).status_code == 201
        http.put("/v1/secrets/HF_TOKEN", json={"value": "hf_0123456789"})
    with local.service.database.reading() as session:
        return {
            table.name: session.scalar(select(func.count()).select_from(table)) or 0
            for table in Base.metadata.sorted_tables
        }


@pytest.mark.parametrize("to", ["sqlite", "postgresql"])
def test_a_backup_is_restored_into_another_database(to: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with LocalServer(tmp_path / "runs").running() as local:
        counts = filled(local)
        stop, writes = threading.Event(), 0

        def write() -> None:
            nonlocal writes
            while not stop.is_set():
                with local.service.database.writing() as session:
                    session.add(User(id=f"usr_{writes}", name=f"busy-{writes}"))
                writes += 1

        busy = threading.Thread(target=write)
        busy.start()
        try:
            told = invoke("backup", str(tmp_path / "b.gz"), "--runs-dir", str(tmp_path / "runs"), "--json")
        finally:
            stop.set()
            busy.join()
        assert {name: number for name, number in told["rows"].items() if name != "users"} == {
            name: number for name, number in counts.items() if name != "users"
        }
        assert (tmp_path / "b.gz").stat().st_mode & 0o077 == 0
    url = request.getfixturevalue("postgres_url") if to == "postgresql" else None
    place = ["--runs-dir", str(tmp_path / "new"), *(["--database", url] if url else [])]
    assert invoke("restore", str(tmp_path / "b.gz"), *place, "--json")["rows"]["runs"] == 3
    assert "is not empty" in invoke("restore", str(tmp_path / "b.gz"), *place, fails=True)
    settings = Settings(runs_dir=tmp_path / "new", database=url)
    (tmp_path / "new" / ".server").mkdir(parents=True, exist_ok=True)
    database = Database(settings.database_url)
    with database.reading() as session:
        rows = session.scalars(select(RunRow).order_by(RunRow.seed)).all()
        assert [row.labels for row in rows] == [{"a": "b"}] * 3 and rows[0].created_at.tzinfo is not None
    database.close()
    with _again(tmp_path / "new", url) as http:
        assert len(http.get("/v1/runs").json()["items"]) == 3
        assert http.post("/v1/users", json={"name": "later"}).status_code == 201  # its audit entry has a new number


def _again(runs_dir: Path, url: str | None) -> Any:
    """An admin's client of a service over a restored database."""
    from fastapi.testclient import TestClient
    from mleredux_server.accounts.accounts import make_token
    from mleredux_server.app import create_app, make_service

    service = make_service(Settings(runs_dir=runs_dir, database=url), Catalogue())
    with service.database.writing() as session:
        found = session.scalars(select(User).where(User.name == "admin")).one()
        token = make_token(session, found, "after", ["admin"])[1]
    return TestClient(create_app(service), headers={"Authorization": f"Bearer {token}"})


def test_what_is_no_backup_is_refused_and_leaves_nothing(local: LocalServer, tmp_path: Path) -> None:
    filled(local)
    whole = tmp_path / "b.gz"
    invoke("backup", str(whole), "--runs-dir", str(local.service.settings.runs_dir))
    (tmp_path / "cut.gz").write_bytes(whole.read_bytes()[:-200])
    (tmp_path / "text.gz").write_text("hello")
    for name in ("cut.gz", "text.gz"):
        said = invoke("restore", str(tmp_path / name), "--runs-dir", str(tmp_path / "new"), fails=True)
        assert "not a backup" in said
    assert invoke("restore", str(whole), "--runs-dir", str(tmp_path / "new"), "--json")["rows"]["runs"] >= 3


NOW = REVISIONS[-1]
NEXT = f"{int(NOW) + 1:04}"
LATER = """
import sqlalchemy as sa
from alembic import op

revision = "{next}"
down_revision = "{last}"


def upgrade():
    op.create_table("later", sa.Column("id", sa.Integer(), primary_key=True))


def downgrade():
    op.drop_table("later")
"""


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_a_database_goes_down_and_up_again(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = request.getfixturevalue("postgres_url") if engine == "postgresql" else None
    place = ["--runs-dir", str(tmp_path / "runs"), *(["--database", url] if url else [])]
    invoke("migrate", *place)
    invoke("user", "create", "ann", *place)
    local = LocalServer(tmp_path / "runs", database=url)
    run = local.make_run()
    with local.service.database.writing() as session:
        session.add(RunLabel(run_id=run.id, name="a", value="b"))
    local.service.database.close()
    _add_revision(tmp_path, monkeypatch)
    database = Database(Settings(runs_dir=tmp_path / "runs", database=url).database_url)
    database.migrate(NEXT)
    assert inspect(database.engine).has_table("later")
    assert f"revision {NOW}" in invoke("downgrade", NOW, *place)
    assert not inspect(database.engine).has_table("later")
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(RunLabel)) == 1
    database.migrate(NEXT)
    assert database.revision() == engine_module.REVISIONS[-1]
    with database.reading() as session:
        assert session.scalars(select(RunLabel.value)).all() == ["b"]
    database.close()
    assert [row["name"] for row in invoke("user", "list", *place, "--json")] == ["admin", "ann"]
    assert "There is no revision" in invoke("downgrade", "9999", *place, fails=True)


def _add_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server know a revision after its own ones."""
    migrations = tmp_path / "migrations"
    shutil.copytree(engine_module._MIGRATIONS, migrations)
    (migrations / "versions" / f"{NEXT}_later.py").write_text(LATER.format(next=NEXT, last=NOW))
    monkeypatch.setattr(engine_module, "_MIGRATIONS", migrations)
    for module in ("database.engine", "database"):
        monkeypatch.setattr(f"mleredux_server.{module}.REVISIONS", (*REVISIONS, NEXT))


@pytest.mark.parametrize(("revision", "reason"), [("0009", "before 0.3.0"), ("9999", "newer version")])
@pytest.mark.parametrize("what", ["database", "backup"])
def test_what_no_migration_leads_from_is_refused(what: str, revision: str, reason: str, tmp_path: Path) -> None:
    place = ["--runs-dir", str(tmp_path / "runs")]
    invoke("migrate", *place)
    file = tmp_path / "b.gz"
    invoke("backup", str(file), *place)
    if what == "database":
        database = Database(Settings(runs_dir=tmp_path / "runs").database_url)
        with database.writing() as session:
            session.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
        database.close()
        assert reason in invoke("migrate", *place, fails=True)
    else:
        content = gzip.decompress(file.read_bytes()).replace(f'"{NOW}"'.encode(), f'"{revision}"'.encode())
        file.write_bytes(gzip.compress(content))
        assert reason in invoke("restore", str(file), "--runs-dir", str(tmp_path / "new"), fails=True)


def test_a_backup_that_fails_leaves_nothing(local: LocalServer, tmp_path: Path) -> None:
    (tmp_path / "b.gz").mkdir()
    with pytest.raises(OSError):
        backup(local.service.database, tmp_path / "b.gz")
    assert not list(tmp_path.glob(".b.gz*"))


def test_new_projects_have_the_configured_quota(tmp_path: Path) -> None:
    env = {"MLEREDUX_DEFAULT_QUOTA": "concurrent_runs=2 cpus=8 sandboxes=isolated,process max_time_limit=2h"}
    place = ["--runs-dir", str(tmp_path / "runs")]
    invoke("migrate", *place)
    invoke("user", "create", "ann", *place, env=env)
    quota = invoke("project", "show", "ann", *place, "--json")["quota"]
    assert (quota["concurrent_runs"], quota["cpus"], quota["max_time_limit"]) == (2, 8.0, 7200)
    assert quota["sandboxes"] == ["isolated", "process"]
    said = invoke("user", "create", "bob", *place, env={"MLEREDUX_DEFAULT_QUOTA": "cpu=8"}, fails=True)
    assert "cpu" in said


def test_service_accounts_work_in_one_project(local: LocalServer) -> None:
    local.user("owner")
    with admin(local) as http:
        made = http.post("/v1/users", json={"name": "ci-bot", "service": True, "project": "owner"})
        assert made.status_code == 201 and made.json()["service"]
        token = http.post("/v1/tokens", json={"name": "ci", "scopes": ["run"], "user": made.json()["id"]}).json()[
            "token"
        ]
        assert http.post("/v1/users", json={"name": "x", "service": True}).status_code == 422
        assert (
            http.post("/v1/users", json={"name": "x", "service": True, "admin": True, "project": "owner"}).status_code
            == 422
        )
    me = httpx.get(f"{local.url}/v1/me", headers={"Authorization": f"Bearer {token}"}).json()
    assert [(one["name"], one["role"]) for one in me["projects"]] == [("owner", "member")]
