"""The validation endpoint: real sockets, slow and broken clients, a limit on how often it may be asked."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.stages.briefing import _write_script
from mleredux._core.submissions import endpoint as module
from mleredux._core.submissions import rate_limit
from mleredux._core.submissions.endpoint import ValidationEndpoint
from mleredux._core.submissions.rate_limit import RateLimit
from mleredux.errors import SandboxError
from mleredux.models import Column, SubmissionSchema, Verdict

SCHEMA = SubmissionSchema(
    task="t",
    task_version="1",
    rows=1,
    columns=(Column(name="id", role="id"), Column(name="y", role="target", type="number")),
)
GOOD, BAD = b"id,y\n1,2\n", b"id,y\n1,many\n"


class Served:
    def __init__(self, output: Path) -> None:
        self.output, self.recorded = output, list[Verdict]()
        self.endpoint = ValidationEndpoint("run", SCHEMA, output, self.recorded.append, lambda: 42.0)
        self.endpoint.start()

    def post(self, body: bytes = b"", kind: str = "text/csv", path: str = "/validate") -> tuple[int, dict[str, Any]]:
        url = self.endpoint.url.removesuffix("/validate") + path
        request = urllib.request.Request(url, data=body, method="POST", headers={"Content-Type": kind})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def raw(self, data: bytes, *, end: bool = True) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(data)
            if end:
                connection.shutdown(socket.SHUT_WR)
            received = b""
            while block := connection.recv(1 << 16):
                received += block
            return received

    @property
    def port(self) -> int:
        return int(self.endpoint.url.rpartition(":")[2].partition("/")[0])


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "output").mkdir()
    made = Served(tmp_path / "output")
    yield made
    made.endpoint.stop()


def multipart(content: bytes, name: str = "file", before: bytes = b"") -> tuple[bytes, str]:
    head = f'--xYx\r\nContent-Disposition: form-data; name="{name}"; filename="s.csv"\r\n\r\n'.encode()
    return before + head + content + b"\r\n--xYx--\r\n", 'multipart/form-data; boundary="xYx"'


def test_an_upload_or_the_file_in_the_output_folder_is_looked_at_and_recorded(served: Served) -> None:
    assert served.post(GOOD)[1]["result"] == "Submission is valid."
    assert served.post(BAD)[1]["result"].startswith("Submission invalid! Column 'y' must be a number")
    assert served.post()[1]["message"] == "submission.csv does not exist."
    (served.output / "submission.csv").write_bytes(GOOD)
    assert served.post()[1]["valid"] is True
    assert [verdict.valid for verdict in served.recorded] == [True, False, False, True]


def test_multipart_uploads_as_curl_and_browsers_make_them(served: Served) -> None:
    assert served.post(*multipart(GOOD))[1]["valid"] is True
    assert served.post(*multipart(BAD))[1]["valid"] is False
    assert served.post(*multipart(GOOD, name="other"))[1]["valid"] is True
    other = b'--xYx\r\nContent-Disposition: form-data; name="note"\r\n\r\n--xY\r\n'
    assert served.post(*multipart(GOOD, before=other))[1]["valid"] is True
    assert served.post(*multipart(b""))[1]["message"] == "submission.csv is empty."
    for body, kind in (
        (b"--xYx--\r\n", "multipart/form-data; boundary=xYx"),
        (GOOD, "multipart/form-data"),
        (b"--xYx\r\n" + GOOD, "multipart/form-data; boundary=xYx"),
    ):
        status, answer = served.post(body, kind)
        assert status == 400 and "multipart upload" in answer["error"]


def part(disposition: str, content: bytes) -> bytes:
    return f"--xYx \t\r\nContent-Disposition: form-data; {disposition}\r\n\r\n".encode() + content + b"\r\n"


@pytest.mark.parametrize(
    "note",
    [
        part('name="note"; filename="file"', b"hello"),
        part('name="note"; comment="name=file"', b"hello"),
        part('name="filename"', b"hello"),
        b"a preamble that names --xYx in passing\r\n" + part('name="note"', b"text --xYx\r\n--xYxy\r\n"),
    ],
    ids=["filename-file", "quoted", "longer-name", "boundary-in-texts"],
)
def test_the_part_that_is_named_file_is_the_submission(served: Served, note: bytes) -> None:
    body = note + part('filename="x.csv"; name="file"', GOOD) + b"--xYx--"
    assert served.post(body, "multipart/form-data; boundary=xYx")[1]["valid"] is True


@pytest.mark.attack
def test_a_large_multipart_upload_is_not_held_in_memory(served: Served) -> None:
    import resource

    body, kind = multipart(b"id,y\n" + b"1,2\n" * 8_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "Expected 1 row, but there are more" in served.post(body, kind)[1]["message"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


@pytest.mark.parametrize("folder", ["x" * 150, "a\udcffb", "line\nbreak"])
def test_the_path_of_a_socket_is_short_text_whatever_tmpdir_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.setattr(module.tempfile, "tempdir", f"/tmp/{folder}")
    path = module.socket_path("run", tmp_path)
    assert path.is_relative_to("/tmp") and str(path).isprintable() and len(str(path)) < 100


def test_curl_is_answered_on_the_unix_socket(served: Served, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_bytes(GOOD)
    command = ["curl", "-sS", "--unix-socket", str(served.endpoint.socket), "-F", f"file=@{tmp_path / 'mine.csv'}"]
    try:
        told = subprocess.run([*command, "http://localhost/validate"], capture_output=True, timeout=20)
    except FileNotFoundError:  # curl is not required of a machine; other tests ask the same without it
        pytest.skip("there is no curl here")
    assert json.loads(told.stdout)["valid"] is True, told


def test_an_upload_that_stops_is_answered_and_the_next_one_is_not_delayed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a file that became shorter while it was sent."""
    monkeypatch.setattr(module._Handler, "timeout", 0.5)
    answer = served.raw(b"POST /validate HTTP/1.1\r\nContent-Length: 99\r\n\r\nid,y\n", end=False)
    assert b" 400 " in answer.splitlines()[0] and b"The upload was interrupted." in answer
    assert served.post(GOOD)[1]["valid"] is True


@pytest.mark.parametrize("client", ["curl", "python"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "missing", "link to a folder", "-", "link to a file"])
def test_scripts_send_files_only(served: Served, tmp_path: Path, kind: str, client: str) -> None:
    if client == "curl" and not shutil.which("curl"):
        pytest.skip("there is no curl here")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link to a folder").symlink_to("folder")
    (tmp_path / "mine.csv").write_bytes(GOOD)
    (tmp_path / "link to a file").symlink_to("mine.csv")
    _write_script(tmp_path, "validate", "Check a file.")
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("curl" if client == "curl" else sys.executable, "cat"):
        place = tools / (tool if tool in ("curl", "cat") else "python3")
        place.write_text(f'#!/bin/sh\nexec {shutil.which(tool)} "$@"\n')
        place.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", tmp_path / "validate.sh", "/dev/zero" if kind == "device" else kind],
        cwd=tmp_path,
        env={"PATH": str(tools), "MLEREDUX_VALIDATE_URL": served.endpoint.url},
        capture_output=True,
        text=True,
        timeout=20,
    )
    if kind == "link to a file":
        assert (done.returncode, json.loads(done.stdout)["valid"]) == (0, True), done
    else:
        assert (done.returncode, done.stdout, done.stderr.count("is not a file.\n")) == (2, "", 1), done
        assert served.recorded == []


@pytest.mark.attack
def test_a_multipart_upload_of_too_many_parts_is_refused(served: Served) -> None:
    assert served.post(*multipart(GOOD, before=part('name="note"', b"") * 999))[1]["valid"] is True
    status, answer = served.post(*multipart(GOOD, before=part('name="note"', b"") * 1_001))
    assert (status, answer["error"]) == (400, "The multipart upload has more than 1000 parts.")


@pytest.mark.attack
def test_who_asks_too_often_waits_and_his_uploads_are_not_kept(served: Served) -> None:
    answers = [served.post(GOOD)[0] for _ in range(rate_limit.BURST + 3)]
    assert answers[: rate_limit.BURST] == [200] * rate_limit.BURST and answers[-1] == 429
    status, answer = served.post(GOOD * 400_000)
    assert status == 429 and answer["message"].startswith("Too many validations; try again in ")
    assert len(served.recorded) == rate_limit.BURST


def test_the_bucket_fills_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    limit = RateLimit(burst=2, per_second=0.5)
    assert [limit.take(), limit.take()] == [0, 0]
    assert limit.take() == pytest.approx(2)
    now[0] += 2
    assert limit.take() == 0 and limit.take() > 0
    now[0] += 1e6
    assert [limit.take() for _ in range(3)][:2] == [0, 0], "never more than the burst at once"


def test_time_and_health(served: Served) -> None:
    for path, key, value in (("time", "seconds_left", 42.0), ("health", "status", "running")):
        with urllib.request.urlopen(served.endpoint.url.replace("validate", path)) as answer:
            assert json.loads(answer.read())[key] == value
    assert served.post(path="/score")[0] == 404


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\xff\x13\x37\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST /validate HTTP/1.1\r\nContent-Length: 500\r\n\r\nid,y\n",
        b"POST /validate HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /validate HTTP/1.1\r\nContent-Length: 99999999999999999\r\n\r\n",
        b"POST /validate HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nid,y\n\r\n0\r\n\r\n",
        b"POST /validate HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
        b"A" * 200_000,
        b"",
    ],
    ids=["noise", "half", "short", "negative", "huge", "chunked", "heads", "line", "nothing"],
)
@pytest.mark.attack
def test_broken_requests_change_nothing(served: Served, capfd: pytest.CaptureFixture[str], data: bytes) -> None:
    try:
        received = served.raw(data)
    except OSError:
        received = b""
    assert b" 200 " not in received.partition(b"\r\n")[0]
    assert served.recorded == []
    assert served.post(GOOD)[0] == 200
    captured = capfd.readouterr()
    assert "Traceback" not in captured.err


@pytest.mark.attack
def test_slow_clients_do_not_keep_others_from_the_supervisor(served: Served) -> None:
    held = []
    for _ in range(module.MAX_CONNECTIONS + 10):  # the last ones wait in the queue of the socket
        connection = socket.create_connection(("127.0.0.1", served.port), timeout=20)
        connection.sendall(b"POST /validate HTTP/1.1\r\nContent-Length: 100\r\n\r\nid")
        held.append(connection)
    assert sum("process_request_thread" in thread.name for thread in threading.enumerate()) <= module.MAX_CONNECTIONS
    for connection in held:
        connection.close()


@pytest.mark.attack
def test_a_verdict_that_comes_after_the_end_is_not_recorded(served: Served) -> None:
    served.endpoint.stop()
    served.endpoint.answer(None)
    assert served.recorded == []
    assert not served.endpoint.folder.exists()


@pytest.mark.attack
@pytest.mark.parametrize("state", ["free", "used", "damaged"])
def test_an_agent_that_outlives_a_kill_finds_the_endpoint_again(served: Served, state: str) -> None:
    port, killed = served.port, served.endpoint
    with socket.create_connection(("127.0.0.1", port), timeout=20):  # the server closes it first
        killed._wake.close()
        assert killed._thread is not None
        killed._thread.join()
        for server in killed._servers:
            server.server_close()
    if state == "damaged":
        (killed.folder / "port").write_text("99999999")
    other = socket.create_server(("127.0.0.1", port)) if state == "used" else None
    again = Served(served.output)
    assert again.endpoint.socket == killed.socket and (again.port == port) == (state == "free")
    assert again.post(GOOD)[1]["valid"] is True
    again.endpoint.stop()
    assert not killed.folder.exists()
    if other is not None:
        other.close()


def test_a_folder_that_somebody_else_put_there_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "output").mkdir()
    (tmp_path / "elsewhere").mkdir()
    endpoint = ValidationEndpoint("run", SCHEMA, tmp_path / "output", lambda verdict: None, lambda: 0.0)
    endpoint.folder.symlink_to(tmp_path / "elsewhere")
    try:
        with pytest.raises(SandboxError, match="belongs to another program"):
            endpoint.start()
    finally:
        endpoint.folder.unlink()
