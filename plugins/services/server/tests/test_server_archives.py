"""All files of a run in one archive, extracted by common programs."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import socket
import subprocess
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from urllib.parse import unquote

import httpx
import psutil
import pytest
from mleredux._core.stages.produce import write_manifest
from mleredux._core.store import Run
from mleredux_support.server_local import LocalServer

HOSTILE = [
    b"..\\..\\evil.txt",
    b"C:\\evil.txt",
    b"a\nb",
    b"\x1b[31m",
    b"\xff\xfe",
    b"%2e%2e",
    b"-rf",
    b"nul.txt",
    b"space ",
    b"dot.",
    "größe €".encode(),
    b"x" * 250,
]


@pytest.fixture(scope="module")
def http(local: LocalServer) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {local.token}"}
    with httpx.Client(base_url=local.url, headers=headers, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def run(local: LocalServer) -> Run:
    made = local.make_run()
    code = made.output_dir / "code"
    code.mkdir()
    for name in HOSTILE:
        (code / os.fsdecode(name)).write_bytes(b"content of " + name)
    (code / "..." / "deep").mkdir(parents=True)
    (code / "..." / "deep" / "file").write_bytes(b"deep")
    (code / "away").symlink_to("/etc/passwd")
    (made.output_dir / "submission.csv").write_bytes(b"id,label\n" * 1000)
    write_manifest(made)
    local.settle(made.id, "done")
    return made


def expected(run: Run) -> dict[str, str]:
    """Return hashes of the manifest's files, by path; that of `run.json` without the server's folder of data."""
    assert run.manifest is not None
    found = {one.path: one.sha256 for one in run.manifest.artifacts}
    record, folder = (run.path / "run.json").read_bytes(), str(run.spec.data_dir).encode()
    found["run.json"] = hashlib.sha256(record.replace(folder, b"*" * len(folder))).hexdigest()
    return {
        path: sha256 or hashlib.sha256((run.path / path).read_bytes()).hexdigest() for path, sha256 in found.items()
    }


def check(names: list[str], contents: dict[str, bytes], run: Run) -> None:
    assert len(set(names)) == len(names)
    for name in names:
        parts = PurePosixPath(name).parts
        assert not name.startswith("/") and ".." not in parts and "\\" not in name and name.isprintable()
        windows = PureWindowsPath(name)
        assert not windows.drive and not windows.is_absolute() and not windows.is_reserved()
    found = {unquote(name): hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    assert found == expected(run)


def test_a_zip_has_all_files_under_safe_names(http: httpx.Client, run: Run) -> None:
    answer = http.get(f"/v1/runs/{run.id}/archive")
    assert answer.headers["content-type"] == "application/zip"
    assert f'filename="{run.id}.zip"' in answer.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        check(archive.namelist(), {name: archive.read(name) for name in archive.namelist()}, run)


@pytest.mark.parametrize(("form", "mode"), [("tar", "r:"), ("tar.gz", "r:gz")])
def test_a_tar_has_all_files_under_safe_names(http: httpx.Client, run: Run, form: str, mode: str) -> None:
    answer = http.get(f"/v1/runs/{run.id}/archive", params={"format": form})
    with tarfile.open(fileobj=io.BytesIO(answer.content), mode=mode) as archive:  # type: ignore[call-overload]
        assert all(member.isreg() for member in archive.getmembers())
        contents = {one.name: archive.extractfile(one).read() for one in archive.getmembers()}
        check(archive.getnames(), contents, run)


@pytest.mark.parametrize(
    ("form", "command"),
    [("zip", ["unzip", "-q"]), ("tar", ["tar", "-x", "-f"]), ("tar.gz", ["tar", "-x", "-z", "-f"])],
)
def test_common_programs_unpack_them(
    http: httpx.Client, run: Run, tmp_path: Path, form: str, command: list[str]
) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    packed, target = tmp_path / "archive", tmp_path / "target"
    packed.write_bytes(http.get(f"/v1/runs/{run.id}/archive", params={"format": form}).content)
    target.mkdir()
    done = subprocess.run(
        [*command, str(packed)], cwd=target, capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8"}
    )
    assert done.returncode == 0, done.stderr
    found = {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*") if path.is_file()}
    check(list(found), found, run)


def test_a_prefix_selects_files(http: httpx.Client, run: Run) -> None:
    answer = http.get(f"/v1/runs/{run.id}/archive", params={"prefix": "output/code/..."})
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert [unquote(name) for name in archive.namelist()] == ["output/code/.../deep/file"]
    assert http.get(f"/v1/runs/{run.id}/archive", params={"prefix": "nothing"}).status_code == 404
    assert http.get(f"/v1/runs/{run.id}/archive", params={"format": "rar"}).status_code == 422


def test_a_running_run_gives_its_current_files(local: LocalServer, http: httpx.Client) -> None:
    going_on = local.make_run()
    assert zipfile.ZipFile(io.BytesIO(http.get(f"/v1/runs/{going_on.id}/archive").content)).namelist() == []
    (going_on.logs_dir / "agent.log").write_bytes(b"hello")
    for form in ("tar", "tar.gz"):
        content = http.get(f"/v1/runs/{going_on.id}/archive", params={"format": form}).content
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            assert archive.getnames() == ["logs/agent.log"]


def test_half_a_gigabyte_of_zeros_costs_no_memory(local: LocalServer, http: httpx.Client) -> None:
    large = local.make_run()
    with (large.output_dir / "sparse.bin").open("wb") as file:
        file.truncate(1 << 29)
    before = psutil.Process().memory_info().rss
    most = received = 0
    with http.stream("GET", f"/v1/runs/{large.id}/archive") as answer:
        for piece in answer.iter_raw(1 << 16):
            received += len(piece)
            most = max(most, psutil.Process().memory_info().rss)
    assert received < 16 << 20
    assert most - before < 32 << 20


def test_a_disconnected_client_frees_everything(local: LocalServer) -> None:
    large = local.make_run()
    with (large.output_dir / "sparse.bin").open("wb") as file:
        file.truncate(1 << 30)
    host, port = local.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as raw:
        head = f"GET /v1/runs/{large.id}/archive?format=tar HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {local.token}"
        raw.sendall(f"{head}\r\n\r\n".encode())
        assert raw.recv(65536)
        deadline = time.monotonic() + 60
        while not _open(large):
            assert time.monotonic() < deadline, "the file is not read"
            time.sleep(0.01)
    deadline = time.monotonic() + 60
    while left := _open(large):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def test_a_tar_with_a_truncated_file_is_aborted(local: LocalServer, http: httpx.Client) -> None:
    going_on = local.make_run()
    file = going_on.output_dir / "large.bin"
    with file.open("wb") as opened:
        opened.truncate(64 << 20)
    with (
        pytest.raises(httpx.RemoteProtocolError),
        http.stream("GET", f"/v1/runs/{going_on.id}/archive", params={"format": "tar"}) as answer,
    ):
        for _ in answer.iter_raw(1 << 16):
            os.truncate(file, 1 << 20)
    assert threading.active_count() < 60


def _open(run: Run) -> list[str]:
    return [one.path for one in psutil.Process().open_files() if one.path.startswith(str(run.path))]
