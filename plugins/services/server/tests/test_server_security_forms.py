"""Hostile forms: malformed, endless or misleading multipart bodies are refused with a message, and leave no file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from mleredux_server.accounts.limits import RateLimit
from mleredux_support.server_local import LocalServer


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    folder = Path(tmp_path_factory.mktemp("forms")) / "runs"
    with LocalServer(folder, max_upload_mb=1, max_body_kb=64).running() as started:
        started.app.state.limits.of_user = RateLimit(10**6)
        yield started


@pytest.fixture(scope="module")
def http(local: LocalServer) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {local.token}"}
    with httpx.Client(base_url=local.url, headers=headers, timeout=30) as client:
        yield client


def part(name: str, content: bytes, *, filename: str | None = None, more: bytes = b"") -> bytes:
    said = f'form-data; name="{name}"' + (f'; filename="{filename}"' if filename is not None else "")
    return b"--B\r\nContent-Disposition: " + said.encode() + b"\r\n" + more + b"\r\n" + content + b"\r\n"


TASK = part("task", b"digits")
FILE = part("file", b"id,class\n", filename="a.csv")
FORMS: dict[str, tuple[str, bytes]] = {
    "no boundary": ("multipart/form-data", TASK + FILE + b"--B--\r\n"),
    "empty boundary": ("multipart/form-data; boundary=", TASK + FILE + b"--B--\r\n"),
    "long boundary": ("multipart/form-data; boundary=" + "b" * 5000, TASK + FILE + b"--B--\r\n"),
    "other boundary": ("multipart/form-data; boundary=C", TASK + FILE + b"--B--\r\n"),
    "no end": ("multipart/form-data; boundary=B", TASK + FILE),
    "cut": ("multipart/form-data; boundary=B", TASK + FILE[:40]),
    "nothing": ("multipart/form-data; boundary=B", b""),
    "only an end": ("multipart/form-data; boundary=B", b"--B--\r\n"),
    "no file": ("multipart/form-data; boundary=B", TASK + b"--B--\r\n"),
    "no task": ("multipart/form-data; boundary=B", FILE + b"--B--\r\n"),
    "two files": ("multipart/form-data; boundary=B", TASK + FILE + FILE + b"--B--\r\n"),
    "two tasks": ("multipart/form-data; boundary=B", TASK + TASK + FILE + b"--B--\r\n"),
    "many parts": ("multipart/form-data; boundary=B", TASK + part("x", b"y") * 20_000 + FILE + b"--B--\r\n"),
    "many headers": (
        "multipart/form-data; boundary=B",
        TASK + part("file", b"x", filename="a", more=b"X-A: b\r\n" * 20_000) + b"--B--\r\n",
    ),
    "long header": (
        "multipart/form-data; boundary=B",
        TASK + part("file", b"x", filename="a", more=b"X-A: " + b"b" * 500_000 + b"\r\n") + b"--B--\r\n",
    ),
    "long name": ("multipart/form-data; boundary=B", TASK + part("f" * 100_000, b"x") + FILE + b"--B--\r\n"),
    "long field": ("multipart/form-data; boundary=B", part("task", b"d" * 900_000) + FILE + b"--B--\r\n"),
    "too large": (
        "multipart/form-data; boundary=B",
        TASK + part("file", b"x" * 1_200_000, filename="a") + b"--B--\r\n",
    ),
    "no name": (
        "multipart/form-data; boundary=B",
        TASK + b"--B\r\nContent-Disposition: form-data\r\n\r\nx\r\n" + FILE + b"--B--\r\n",
    ),
    "nul in a field": ("multipart/form-data; boundary=B", part("task", b"dig\0its") + FILE + b"--B--\r\n"),
    "bytes in a field": ("multipart/form-data; boundary=B", part("task", b"\xff\xfe\x80") + FILE + b"--B--\r\n"),
    "nested": (
        "multipart/form-data; boundary=B",
        TASK
        + part("file", b"--C\r\n\r\nx\r\n--C--", more=b"Content-Type: multipart/mixed; boundary=C\r\n")
        + b"--B--\r\n",
    ),
    "urlencoded": ("application/x-www-form-urlencoded", b"task=digits&file=x"),
    "json": ("application/json", b'{"task": "digits"}'),
}


ODD_BUT_WHOLE = {"two tasks", "no name", "nested"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", ["/v1/submissions", "/v1/validations"])
def test_a_malformed_form_is_refused_and_leaves_nothing(
    local: LocalServer, http: httpx.Client, path: str, form: str
) -> None:
    content_type, body = FORMS[form]
    state_dir = local.service.settings.state_dir
    before = {file for file in state_dir.rglob("*") if "sqlite" not in file.name}
    try:
        answer = http.post(path, content=body, headers={"Content-Type": content_type})
    except (httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):
        assert form in ("too large", "many parts", "many headers", "long header", "long field", "long name")
        return
    if form in ODD_BUT_WHOLE and answer.status_code in (200, 202):
        return
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    left = {file for file in state_dir.rglob("*") if "sqlite" not in file.name and file.is_file()} - before
    assert not left, "a refused form leaves no file"


@pytest.mark.parametrize(
    "name", ["../../../evil.csv", "/etc/passwd", "a\\..\\b.csv", "x" * 5000, "", "e\u0301.csv", "%00"]
)
def test_the_name_of_an_uploaded_file_is_only_a_name(local: LocalServer, http: httpx.Client, name: str) -> None:
    body = TASK + part("file", b"id,class\n", filename=name) + b"--B--\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=B"}
    answer = http.post("/v1/submissions", content=body, headers=headers)
    assert answer.status_code in (202, 413, 422), answer.text
    folder = local.service.settings.runs_dir
    assert not list(folder.parent.rglob("evil*csv"))
    assert "x-evil" not in answer.headers
