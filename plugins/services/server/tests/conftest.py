from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from mleredux_server.testing import ServerProcess


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that is started once for the file."""
    with ServerProcess(Path(tmp_path_factory.mktemp("server")) / "runs") as started:
        yield started


@pytest.fixture(scope="module")
def http(server: ServerProcess) -> Iterator[httpx.Client]:
    """The admin's client of that server."""
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}, timeout=30) as client:
        yield client
