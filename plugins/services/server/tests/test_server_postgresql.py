"""The service on PostgreSQL: the same tables, the same answers, and nothing lost when the database goes away."""

from __future__ import annotations

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
from mleredux_server.database.tables import Base
from mleredux_server.settings import Settings
from mleredux_server.testing import ServerProcess
from mleredux_server.testing_postgresql import PostgresServer

pytestmark = pytest.mark.postgresql
RUN: dict[str, Any] = {"task": "digits", "agent": "dummy", "sandbox": "process"}


def url_of(tmp_path: Path, url: str) -> str:
    return Settings(runs_dir=tmp_path, database=url).database_url


def test_the_migrations_make_the_tables_that_the_code_expects(postgres_url: str, tmp_path: Path) -> None:
    database = Database(url_of(tmp_path, postgres_url))
    database.migrate()
    database.migrate()
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    database.close()


def test_servers_that_start_at_once_migrate_once(postgres_url: str, tmp_path: Path) -> None:
    databases = [Database(url_of(tmp_path, postgres_url)) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(Database.migrate, databases))
    for database in databases:
        database.close()
