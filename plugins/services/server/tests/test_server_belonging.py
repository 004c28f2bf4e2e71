"""What a server checks before it starts: its address, and that the database belongs to its runs directory."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from mleredux._core.plugins import Catalogue
from mleredux.errors import MlereduxError
from mleredux_server.app import make_service
from mleredux_server.operations.address import bound
from mleredux_server.operations.ownership import bind
from mleredux_server.settings import Settings


def start(runs_dir: Path, database: Path) -> None:
    service = make_service(Settings(runs_dir=runs_dir, database=f"sqlite:///{database}"), Catalogue())
    try:
        bind(service)
    finally:
        service.database.close()


def test_a_database_of_another_runs_directory_is_refused_unchanged(tmp_path: Path) -> None:
    start(tmp_path / "runs", tmp_path / "shared.sqlite")
    for other in ("empty", "used"):
        if other == "used":
            start(tmp_path / "used", tmp_path / "own.sqlite")
        with pytest.raises(MlereduxError, match=r"belongs to a runs directory other than.*--runs-dir"):
            start(tmp_path / other, tmp_path / "shared.sqlite")
    start(tmp_path / "runs", tmp_path / "shared.sqlite")


def test_a_runs_directory_may_be_moved_and_survives_the_loss_of_its_database(tmp_path: Path) -> None:
    database = tmp_path / "shared.sqlite"
    start(tmp_path / "runs", database)
    (tmp_path / "runs").rename(tmp_path / "moved")
    start(tmp_path / "moved", database)
    for file in tmp_path.glob("shared.sqlite*"):
        file.unlink()
    start(tmp_path / "moved", database)
    with pytest.raises(MlereduxError, match="belongs to a runs directory other"):
        start(tmp_path / "fresh", database)


def test_a_server_that_can_not_listen_creates_no_user(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [sys.executable, "-m", "mleredux", "serve", "--port", str(taken.getsockname()[1])]
        command += ["--runs-dir", str(tmp_path / "runs")]
        failed = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("Error: Can't listen on 127.0.0.1:")
    assert not (tmp_path / "runs" / ".server" / "service.sqlite").exists()


@pytest.mark.parametrize(("host", "open_to_others"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_a_server_that_is_open_to_other_machines_warns_of_missing_tls(
    tmp_path: Path, host: str, open_to_others: bool
) -> None:
    command = [sys.executable, "-m", "mleredux", "serve", "--host", host, "--port", "0", "--runs-dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None and server.stderr is not None
        assert any(line.startswith("Listening on ") for line in server.stdout)
        server.terminate()
        said = server.stderr.read()
    assert ("is open to other machines without TLS" in said) is open_to_others


def test_who_connects_before_a_server_has_imported_its_libraries_waits(tmp_path: Path) -> None:
    with bound(Settings(runs_dir=tmp_path, port=0)) as listening:
        socket.create_connection(listening.getsockname(), 10).close()
