"""The service on PostgreSQL: the same tables, the same responses, and nothing lost when the database fails."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from mleredux.errors import MlereduxError
from mleredux_server.database import Database
from mleredux_server.database.tables import Base, Job, Project, RunRow
from mleredux_server.database.types import Words
from mleredux_server.settings import Settings
from mleredux_support.postgresql import PostgresServer
from mleredux_support.server import ServerProcess
from mleredux_support.server_local import LocalServer
from sqlalchemy import func, literal, select
from sqlalchemy.exc import DBAPIError

pytestmark = pytest.mark.postgresql
RUN: dict[str, Any] = {"task": "digits", "agent": "dummy", "sandbox": "process"}
SLOW = str(Path(__file__).parent / "slow_agent")


def test_the_migrations_create_the_tables_that_the_code_expects(postgres_url: str, tmp_path: Path) -> None:
    database = Database(Settings(runs_dir=tmp_path, database=postgres_url).database_url)
    database.migrate()
    database.migrate()
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    database.close()


def test_concurrently_started_servers_migrate_once(postgres_url: str, tmp_path: Path) -> None:
    url = Settings(runs_dir=tmp_path, database=postgres_url).database_url
    code = "import sys; from mleredux_server.database import Database; Database(sys.stdin.read()).migrate()"
    programs = [subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, text=True) for _ in range(2)]
    for program in programs:
        assert program.stdin is not None
        program.stdin.write(url)
        program.stdin.close()
    assert [program.wait(60) for program in programs] == [0, 0]


@pytest.fixture(scope="module")
def local(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server without a scheduler: new runs stay queued."""
    folder = Path(tmp_path_factory.mktemp("local"))
    with LocalServer(folder / "runs", database=postgres_server.new_database()).running() as started:
        yield started


@pytest.fixture
def admin(local: LocalServer) -> Iterator[httpx.Client]:
    with client(local.url, local.token) as http:
        yield http


def client(url: str, token: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=30)


def test_runs_are_created_listed_filtered_and_paged(admin: httpx.Client) -> None:
    made = [
        admin.post("/v1/runs", json={**RUN, "seed": seed, "labels": {"of": "paging", "odd": str(seed % 2)}})
        for seed in range(7)
    ]
    assert [answer.status_code for answer in made] == [201] * 7
    ids = [answer.json()["id"] for answer in reversed(made)]

    def pages(**asked: Any) -> list[str]:
        found, cursor = [], None
        while True:
            more = {"cursor": cursor} if cursor else {}
            page = admin.get("/v1/runs", params={"label": "of:paging", "limit": 3, **asked, **more}).json()
            found += [run["id"] for run in page["items"]]
            if (cursor := page["next"]) is None:
                return found

    assert pages() == ids
    assert pages(sort="created_at") == ids[::-1]
    assert sorted(pages(sort="-score")) == sorted(ids)
    assert pages(label=["of:paging", "odd:1"]) == [ids[1], ids[3], ids[5]]
    assert pages(status="queued", task="digits") == ids
    assert pages(status="done") == []
    assert pages(created_after="2100-01-01T00:00:00Z") == []
    assert admin.get(f"/v1/runs/{ids[0]}").json()["labels"] == {"of": "paging", "odd": "0"}


def test_concurrent_requests_with_one_key_create_one_run(local: LocalServer, admin: httpx.Client) -> None:
    asked = {**RUN, "labels": {"of": "one key"}}

    def ask(_number: int) -> httpx.Response:
        return admin.post("/v1/runs", json=asked, headers={"Idempotency-Key": "the-same"})

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, range(12)))
    last = ask(0)
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert last.status_code == 201
    assert last.headers["Idempotency-Replayed"] == "true"
    assert {answer.json()["id"] for answer in answers if answer.status_code == 201} == {last.json()["id"]}
    assert len(admin.get("/v1/runs", params={"label": "of:one key"}).json()["items"]) == 1
    assert admin.post("/v1/runs", json=RUN, headers={"Idempotency-Key": "the-same"}).status_code == 422


def test_a_quota_holds_for_concurrent_requests(local: LocalServer) -> None:
    token = local.user("ada")
    with local.service.database.writing() as session:
        project = session.scalars(select(Project).where(Project.name == "ada")).one()
        project.quota = {**project.quota, "queued_runs": 5, "sandboxes": ["process"]}
    with client(local.url, token) as http, ThreadPoolExecutor(12) as pool:
        codes = Counter(pool.map(lambda seed: http.post("/v1/runs", json={**RUN, "seed": seed}).status_code, range(12)))
    assert codes == {201: 5, 403: 7}
    with local.service.database.reading() as session:
        for table in (RunRow, Job):
            assert session.scalar(select(func.count()).where(table.project_id == project.id)) == 5


@pytest.mark.parametrize(
    "path",
    [
        "/v1/runs/a%00b",
        "/v1/runs?task=a%00b",
        "/v1/runs?label=a%00:b",
        "/v1/runs?cursor=%00",
        "/v1/runs?project=%00",
        "/v1/runs?experiment=%00",
        "/v1/experiments/%00",
        "/v1/tasks/%00",
    ],
)
def test_a_nul_character_which_postgresql_can_not_store_is_a_client_error(admin: httpx.Client, path: str) -> None:
    answer = admin.get(path)
    assert answer.status_code in (404, 422)
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_nul_character_in_a_text_is_stored_or_refused(admin: httpx.Client) -> None:
    for field in ({"context": "a\0b"}, {"options": {"a\0": "b\0"}}, {"labels": {"a\0": "b"}}, {"task": "a\0"}):
        assert admin.post("/v1/runs", json={**RUN, **field}).status_code in (201, 404, 422), field
    key = {"Idempotency-Key": "a\\u0000b"}
    assert admin.post("/v1/runs", json=RUN, headers=key).status_code == 201


def test_program_output_is_stored_without_invalid_characters(local: LocalServer) -> None:
    with local.service.database.reading() as session:
        assert session.scalar(select(literal("a\0b\ud800c", Words))) == "a\ufffdb\ufffdc"


def test_the_log_contains_no_database_values(local: LocalServer, admin: httpx.Client) -> None:
    with pytest.raises(DBAPIError) as failed, local.service.database.reading() as session:
        session.execute(select(RunRow.id).where(RunRow.id == "a-value-nobody-may-see\0"))
    assert "nobody-may-see" not in str(failed.value)


def test_a_crash_of_postgresql_loses_no_committed_data(postgres_server: PostgresServer) -> None:
    """A guarantee of the tests' own server, which the service's guarantees depend on."""
    import psycopg

    url = postgres_server.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (number int)")
        connection.execute("INSERT INTO kept VALUES (7)")
        postgres_server.stop(signal.SIGQUIT)
    postgres_server.start()
    with psycopg.connect(url) as again:
        assert again.execute("SELECT number FROM kept").fetchall() == [(7,)]


def test_a_refused_database_connection_is_reported_without_the_password(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    url = postgres_server.url().replace(postgres_server.password, "pg-another-secret")
    with pytest.raises(RuntimeError) as failed:
        ServerProcess(tmp_path / "runs", "--database", url).start()
    said = str(failed.value)
    assert "can't be used: " in said
    assert "pg-another-secret" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize("wrong", ["name", "port"])
def test_a_missing_database_is_reported_without_its_password(postgres_server: PostgresServer, wrong: str) -> None:
    url = postgres_server.url("nowhere" if wrong == "name" else "postgres")
    if wrong == "port":
        url = url.replace(f":{postgres_server.port}/", ":1/")
    database = Database(url.replace("postgresql://", "postgresql+psycopg://"))
    with pytest.raises(MlereduxError, match="can't be used") as failed:
        database.migrate()
    assert postgres_server.password not in f"{failed.value} {failed.value.hint}"
