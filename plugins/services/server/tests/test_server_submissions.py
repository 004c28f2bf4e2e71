"""Predictions without an agent: submitted, graded in a separate process, validated; bodies are hostile."""

from __future__ import annotations

import csv
import hashlib
import http.client
import json
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from mleredux._core.data import DataStore
from mleredux._core.plugins import current
from mleredux._core.stages.prepare import prepare
from mleredux._core.store.sparse import remove_tree
from mleredux_server.database.tables import Job, Project, Submission
from mleredux_server.files import uploads
from mleredux_support.server import ServerProcess
from mleredux_support.server_local import LocalServer
from sqlalchemy import select, update

TASK, TECHNIQUE, OTHER = "wine", "cv@wine", "breast-cancer"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with one task prepared."""
    path = tmp_path_factory.mktemp("data")
    prepare(current().task(TASK), current(), DataStore(path))
    return path


@pytest.fixture(scope="module")
def sample(data: Path) -> bytes:
    return (data / TASK / "prepared" / "public" / "sample_submission.csv").read_bytes()


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Iterator[LocalServer]:
    """A server that grades nothing: submissions stay queued."""
    runs = tmp_path_factory.mktemp("local") / "runs"
    with LocalServer(runs, data_dir=data, max_upload_mb=8).running() as running:
        yield running


@pytest.fixture(scope="module")
def client(local: LocalServer) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {local.token}"}
    with httpx.Client(base_url=local.url, headers=headers, timeout=30) as made:
        yield made


@pytest.fixture(scope="module")
def grading(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Iterator[httpx.Client]:
    """The client of a complete server, with its workers."""
    runs = tmp_path_factory.mktemp("server") / "runs"
    with ServerProcess(runs, "--data-dir", str(data), "--workers", "1") as server:
        headers = {"Authorization": f"Bearer {server.token}"}
        with httpx.Client(base_url=server.url, headers=headers, timeout=90) as made:
            yield made


def submit(
    client: httpx.Client, content: bytes, task: str = TASK, name: str = "s.csv", **headers: str
) -> httpx.Response:
    form = {"data": {"task": task}, "files": {"file": (name, content, "text/csv")}}
    return client.post("/v1/submissions", headers=headers, **form)  # type: ignore[arg-type]


def test_a_submission_is_graded_while_its_response_waits(grading: httpx.Client, sample: bytes) -> None:
    answer = submit(grading, sample, Prefer="respond-async, wait=60")
    assert (answer.status_code, answer.headers["preference-applied"]) == (201, "wait=60")
    made = answer.json()
    assert made["status"] == "done"
    assert made["report"]["valid_submission"] is True
    assert isinstance(made["report"]["score"], float)
    assert made["report"]["submission_path"] == "submission.csv"
    assert (made["size"], made["sha256"]) == (len(sample), hashlib.sha256(sample).hexdigest())
    assert grading.get(answer.headers["location"]).json() == made


def test_an_unscorable_submission_has_a_report_with_the_reason(grading: httpx.Client) -> None:
    made = submit(grading, b"no,such,columns\n1,2,3\n", Prefer="wait=60").json()
    assert made["status"] == "done"
    assert made["report"]["valid_submission"] is False
    assert made["message"] == made["report"]["message"] != ""


def test_documents_of_technique_tasks_are_prepared_and_graded_too(grading: httpx.Client) -> None:
    made = submit(grading, b'{"nothing": true}', task=TECHNIQUE).json()
    assert made["status"] == "queued"
    assert "prepared" in made["message"]
    deadline = time.monotonic() + 240
    while made["status"] not in ("done", "failed") and time.monotonic() < deadline:
        time.sleep(0.2)
        made = grading.get(f"/v1/submissions/{made['id']}").json()
    assert (made["status"], made["report"]["valid_submission"]) == ("done", False)


def test_server_errors_are_reported_without_paths(grading: httpx.Client, data: Path) -> None:
    answers = data / OTHER / "prepared" / "private"
    prepare(current().task(OTHER), current(), DataStore(data))
    public = (data / OTHER / "prepared" / "public" / "sample_submission.csv").read_bytes()
    for file in answers.iterdir():
        file.write_text("broken: SECRET\n")
    made = submit(grading, public, task=OTHER, Prefer="wait=60").json()
    assert made["status"] == "failed"
    assert OTHER in made["message"]
    assert str(data) not in json.dumps(made) and "SECRET" not in json.dumps(made)


def test_a_submission_waits_in_the_queue_and_is_listed(client: httpx.Client, local: LocalServer, sample: bytes) -> None:
    first = submit(client, sample, name="../../../etc/passwd\r\nX-Evil: 1")
    assert first.status_code == 202
    second = submit(client, sample, Prefer="wait=1")
    assert (second.status_code, second.json()["status"]) == (202, "queued")
    found = first.json()["id"]
    folder = local.service.job_dir("grade", found)
    assert sorted(path.name for path in folder.iterdir()) == ["request.json", "submission.csv"]
    assert (folder / "submission.csv").read_bytes() == sample
    with local.service.database.reading() as session:
        job = session.get_one(Job, found)
        assert (job.kind, job.state, job.disk_mb) == ("grade", "queued", 1)
    listed = client.get("/v1/submissions", params={"task": TASK, "limit": 1}).json()
    assert [one["id"] for one in listed["items"]] == [second.json()["id"]]
    rest = client.get("/v1/submissions", params={"limit": 1, "cursor": listed["next"]}).json()
    assert [one["id"] for one in rest["items"]] == [found]
    assert client.get("/v1/submissions", params={"task": "digits"}).json()["items"] == []


def test_a_submission_that_is_not_being_graded_can_be_deleted(
    client: httpx.Client, local: LocalServer, sample: bytes
) -> None:
    found = submit(client, sample).json()["id"]
    with local.service.database.writing() as session:
        session.execute(update(Job).where(Job.id == found).values(state="started"))
    assert client.delete(f"/v1/submissions/{found}").status_code == 409
    with local.service.database.writing() as session:
        session.execute(update(Job).where(Job.id == found).values(state="ended"))
    assert client.delete(f"/v1/submissions/{found}").status_code == 204
    assert client.get(f"/v1/submissions/{found}").status_code == 404
    assert not local.service.job_dir("grade", found).exists()


def test_paging_continues_after_the_last_submission_of_a_page_was_deleted(client: httpx.Client, sample: bytes) -> None:
    older, newer = (submit(client, sample).json()["id"] for _ in range(2))
    page = client.get("/v1/submissions", params={"limit": 1}).json()
    assert [one["id"] for one in page["items"]] == [newer]
    assert client.delete(f"/v1/submissions/{newer}").status_code == 204
    rest = client.get("/v1/submissions", params={"limit": 1, "cursor": page["next"]}).json()
    assert [one["id"] for one in rest["items"]] == [older]


def test_a_repeated_request_creates_nothing_new(client: httpx.Client, sample: bytes) -> None:
    first = submit(client, sample, **{"Idempotency-Key": "one"})
    again = submit(client, sample, **{"Idempotency-Key": "one"})
    other = submit(client, sample + b"\n", **{"Idempotency-Key": "one"})
    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    assert other.json()["type"] == "urn:mleredux:problem:idempotency-mismatch"


def test_submissions_of_other_users_are_not_found(local: LocalServer, client: httpx.Client, sample: bytes) -> None:
    found = submit(client, sample).json()["id"]
    with httpx.Client(
        base_url=local.url, headers={"Authorization": f"Bearer {local.user('mallory')}"}, timeout=60
    ) as stranger:
        assert stranger.get(f"/v1/submissions/{found}").status_code == 404
        assert stranger.delete(f"/v1/submissions/{found}").status_code == 404
        assert stranger.get("/v1/submissions").json()["items"] == []
        form = {"data": {"task": TASK, "project": "admin"}, "files": {"file": sample}}
        assert stranger.post("/v1/submissions", **form).status_code == 404  # type: ignore[arg-type]
    reader = local.user("reader", scopes=["read"])
    refused = httpx.post(
        f"{local.url}/v1/submissions", headers={"Authorization": f"Bearer {reader}"}, data={"task": TASK}, timeout=60
    )
    assert refused.status_code == 403


def test_the_disk_quota_applies_to_submissions(local: LocalServer) -> None:
    token = local.user("small")
    with local.service.database.writing() as session:
        project = session.scalars(select(Project).where(Project.name == "small")).one()
        project.quota = {**project.quota, "disk_mb": 2}
    with httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        assert submit(client, b"x" * (1 << 20)).status_code == 202
        refused = submit(client, b"x" * (2 << 20))
        assert refused.json()["type"] == "urn:mleredux:problem:quota-exceeded"
    _nothing_is_left(local)


FORM = "multipart/form-data; boundary=x"


def part(name: str, content: bytes = b"a") -> bytes:
    return f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + content + b"\r\n"


@pytest.mark.parametrize(
    ("body", "kind", "slug"),
    [
        (b"", FORM, "invalid"),
        (b"task=wine", "application/x-www-form-urlencoded", "invalid"),
        (b"--x\r\n", "multipart/form-data", "invalid"),
        (b"nonsense" * 100, FORM, "invalid"),
        (part("task", TASK.encode()) + part("file"), FORM, "invalid"),
        (part("task", TASK.encode()) + b"--x--\r\n", FORM, "invalid"),
        (part("file") + b"--x--\r\n", FORM, "invalid"),
        (part("file") + part("file") + b"--x--\r\n", FORM, "invalid"),
        (part("task", b"wi\0ne") + part("file") + b"--x--\r\n", FORM, "invalid"),
        (part("task", b"w" * 9999) + b"--x--\r\n", FORM, "too-large"),
        (part("a") * 40 + b"--x--\r\n", FORM, "too-large"),
        (b"--x\r\nContent-Disposition: " + b"a" * 200_000, FORM, "invalid"),
        (b"--x\r\n" + b"A: b\r\n" * 5000 + b"\r\n", FORM, "invalid"),
    ],
)
def test_malformed_bodies_are_refused(
    local: LocalServer, client: httpx.Client, body: bytes, kind: str, slug: str
) -> None:
    for path in ("/v1/submissions", "/v1/validations"):
        answer = client.post(path, content=body, headers={"Content-Type": kind})
        assert answer.json()["type"] == f"urn:mleredux:problem:{slug}", answer.text
    _nothing_is_left(local)


def test_too_large_a_file_is_refused_with_or_without_a_declared_size(local: LocalServer, client: httpx.Client) -> None:
    refused = submit(client, b"x" * (9 << 20))
    assert (refused.status_code, refused.json()["type"]) == (413, "urn:mleredux:problem:too-large")

    def chunks() -> Iterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
        for _ in range(12):
            yield b"x" * (1 << 20)
        yield b"\r\n--x--\r\n"

    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    try:
        answer = client.post("/v1/submissions", content=chunks(), headers=kind)
        assert answer.status_code == 413
    except httpx.WriteError:  # the server did not wait for the rest
        pass
    _nothing_is_left(local)


def test_an_interrupted_upload_leaves_nothing(local: LocalServer) -> None:
    host, port = local.url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port))
    connection.putrequest("POST", "/v1/submissions")
    connection.putheader("Authorization", f"Bearer {local.token}")
    connection.putheader("Content-Type", "multipart/form-data; boundary=x")
    connection.putheader("Content-Length", str(4 << 20))
    connection.endheaders()
    connection.send(b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n' + b"x" * (1 << 20))
    uploads, deadline = local.service.settings.state_dir / "uploads", time.monotonic() + 60
    while not (uploads.is_dir() and list(uploads.iterdir())):
        assert time.monotonic() < deadline, "nothing is received"
        time.sleep(0.01)
    connection.close()
    _nothing_is_left(local)


def test_concurrent_first_uploads_of_a_server_are_not_lost(
    local: LocalServer, client: httpx.Client, sample: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(folder: Path) -> bool:
        time.sleep(random.random() / 2)
        return remove_tree(folder)

    if hasattr(local.app.state, "uploading"):
        del local.app.state.uploading
    monkeypatch.setattr(uploads, "remove_tree", slowly)
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: submit(client, sample), range(6)))
    assert [answer.status_code for answer in answers] == [202] * 6, [answer.text for answer in answers]


def test_uploads_use_constant_memory(tmp_path: Path, data: Path) -> None:
    with LocalServer(tmp_path / "runs", data_dir=data).running() as local:
        size, most = 256 << 20, 0
        head = f'--x\r\nContent-Disposition: form-data; name="task"\r\n\r\n{TASK}\r\n'
        head += '--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n'
        before = psutil.Process().memory_info().rss

        def chunks() -> Iterator[bytes]:
            nonlocal most
            yield head.encode()
            block = b"x" * (1 << 20)
            for _ in range(size >> 20):
                yield block
                most = max(most, psutil.Process().memory_info().rss)
            yield b"\r\n--x--\r\n"

        headers = {"Authorization": f"Bearer {local.token}", "Content-Type": "multipart/form-data; boundary=x"}
        answer = httpx.post(f"{local.url}/v1/submissions", content=chunks(), headers=headers, timeout=60)
        assert (answer.status_code, answer.json()["size"]) == (202, size)
        assert most - before < 32 << 20


def test_validation_reports_the_format_and_nothing_else(
    local: LocalServer, client: httpx.Client, sample: bytes
) -> None:
    def check(content: bytes, task: str = TASK) -> Any:
        return client.post("/v1/validations", data={"task": task}, files={"file": content})

    assert check(sample).json() == {"valid": True, "message": "submission.csv is well-formed."}
    rows = list(csv.reader(sample.decode().splitlines()))
    short = "\n".join(",".join(row) for row in rows[:-1]).encode()
    assert check(short).json()["valid"] is False
    large = sample + b"x" * (5 << 20)  # checked in a separate process
    found = check(large).json()
    assert (set(found), found["valid"]) == ({"valid", "message"}, False)
    assert check(b"", task="no-such-task").status_code == 404
    unprepared = check(b"", task="digits")
    assert (unprepared.status_code, unprepared.json()["type"]) == (409, "urn:mleredux:problem:conflict")
    assert "prepare" in unprepared.json()["hint"]
    with local.service.database.reading() as session:
        assert not session.scalars(select(Submission).where(Submission.task == "digits")).all()
    _nothing_is_left(local)


def _nothing_is_left(local: LocalServer) -> None:
    folder, deadline = local.service.settings.state_dir / "uploads", time.monotonic() + 60
    while (left := list(folder.glob("*"))) or local.app.state.uploading.total():
        assert time.monotonic() < deadline, (left, local.app.state.uploading.total())
        time.sleep(0.05)
