"""Faults of a server's disk that pass by themselves: runs wait with the reason, and are done once."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from mleredux_support.server import ServerProcess

RUN: dict[str, Any] = {"task": "digits", "agent": "slow", "sandbox": "process", "limits": {"cpus": 2, "disk_mb": 8}}
PLUGINS = {"MLEREDUX_PLUGINS": str(Path(__file__).parent / "slow_agent")}
REASONS = {
    "read-only": (503, "The server's disk is read-only."),
    "without inodes": (507, "The server's disk is full; nothing was changed."),
}


@pytest.fixture
def disk(root: None, tmp_path: Path) -> Iterator[Path]:
    """A file system with few inodes."""
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(300 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-N", "1200", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def faulty(fault: str, disk: Path) -> Iterator[None]:
    """Let the disk have a fault; open files can still be written."""
    if fault == "read-only":
        (disk / "shown").mkdir()
        subprocess.run(["mount", "--bind", disk / "runs", disk / "shown"], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", disk / "shown"], check=True)  # before anything uses it
        subprocess.run(["mount", "--bind", disk / "shown", disk / "runs"], check=True)
        yield
        for name in ("runs", "shown"):
            subprocess.run(["umount", "--lazy", disk / name], check=True)
    else:
        (disk / "files").mkdir()
        with suppress(OSError):
            for number in range(10_000):
                (disk / "files" / str(number)).touch()
        yield
        shutil.rmtree(disk / "files")


def wait_for(met: Callable[[], Any], details: Callable[[], Any], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < deadline, f"waited in vain: {details()}"
        time.sleep(0.1)


@pytest.mark.parametrize("fault", REASONS)
def test_runs_wait_with_the_reason_until_the_disk_can_be_written(disk: Path, tmp_path: Path, fault: str) -> None:
    status, reason = REASONS[fault]
    options = ("--workers", "2", "--data-dir", str(tmp_path / "data"), "--min-free-mb", "4")
    with ServerProcess(disk / "runs", *options, env=PLUGINS) as server:
        headers = {"Authorization": f"Bearer {server.token}"}
        with httpx.Client(base_url=server.url, headers=headers, timeout=60) as http:

            def shown() -> list[dict[str, Any]]:
                return [http.get(f"/v1/runs/{run_id}").json() for run_id in ids]

            ids = [http.post("/v1/runs", json={**RUN, "seed": tenths}).json()["id"] for tenths in (30, 1)]
            wait_for(lambda: shown()[0]["status"] == "running", shown)
            with faulty(fault, disk):
                wait_for(lambda: shown()[1]["waiting_for"] == reason, shown)
                refused = http.post("/v1/runs", json={**RUN, "seed": 2})
                assert (refused.status_code, refused.json()["detail"]) == (status, reason)
                assert http.get("/readyz").status_code == 503
            wait_for(lambda: all(run["status"] in ("done", "failed") for run in shown()), shown)
            assert [(run["status"], run["message"]) for run in shown()] == [("done", None)] * 2
            assert len(http.get("/v1/runs").json()["items"]) == 2, "the refused run is gone"
        for run_id in ids:
            assert (disk / "runs" / run_id / "logs" / "agent.log").read_text().count("begun") == 1
