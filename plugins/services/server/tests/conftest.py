from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from mleredux_support.postgresql import PostgresServer, find_binaries
from mleredux_support.server import ServerProcess
from mleredux_support.server_local import LocalServer
from mleredux_testing.pytest_plugin import skip_or_fail


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that is started once per file."""
    with ServerProcess(Path(tmp_path_factory.mktemp("server")) / "runs") as started:
        yield started


@pytest.fixture(scope="module")
def http(server: ServerProcess) -> Iterator[httpx.Client]:
    """The admin's client of that server."""
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server in the test's own process that runs no jobs, started once per file."""
    with LocalServer(Path(tmp_path_factory.mktemp("local")) / "runs").running() as started:
        yield started


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server that is started once, with binaries from Debian's packages."""
    binaries = find_binaries()
    if binaries is None:
        skip_or_fail("postgresql", "PostgreSQL is not installed (see .ci/postgresql)")
    with PostgresServer(binaries) as started:
        yield started


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """URL of an empty PostgreSQL database."""
    return postgres_server.new_database()
