"""Files of a run over HTTP: those of the manifest and no others, whatever names and files an agent created."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, unquote

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mleredux._core.stages.produce import write_manifest
from mleredux._core.store import Run
from mleredux.models.events import Warned
from mleredux.models.paths import path_of, readable
from mleredux_server.files.names import archive_name, disposition
from mleredux_support.server_local import LocalServer

NAMES = {
    "new line": b"a\nX-Evil: 1",
    "no utf-8": b"\xff\xfe.csv",
    "backslash": b"C:\\temp\\x",
    "quote": b'x";evil="1.txt',
    "percent": b"%2e%2e%2f",
    "escape sequence": b"\x1b[31mred",
    "umlaut": "größe €.csv".encode(),
    "spaces": b" two words ",
}


@pytest.fixture(scope="module")
def http(local: LocalServer) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {local.token}"}
    with httpx.Client(base_url=local.url, headers=headers, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def run(local: LocalServer) -> Run:
    """A finished run whose agent was hostile."""
    made = local.make_run()
    output, outside = made.output_dir, made.path.parent / "outside.txt"
    outside.write_text("a secret")
    (output / "data.csv").write_bytes(bytes(range(256)) * 40)
    (output / "empty").write_bytes(b"")
    (output / "page.html").write_text("<script>alert(1)</script>")
    (output / "picture.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")
    (output / "picture.png").write_bytes(b"\x89PNG")
    (output / "link.txt").symlink_to(outside)
    (output / "folder").symlink_to(made.path.parent)
    os.mkfifo(output / "pipe")
    for name in NAMES.values():
        (output / os.fsdecode(name)).write_bytes(name)
    (made.path / "report.html").write_text("<h1>Report</h1>")
    write_manifest(made)
    local.settle(made.id, "done")
    return made


def artifact(run: Run, path: str) -> str:
    return f"/v1/runs/{run.id}/artifacts/{quote(path, safe='/')}"


def test_a_list_has_what_the_manifest_has_page_by_page(http: httpx.Client, run: Run) -> None:
    manifest = run.manifest
    assert manifest is not None
    pages, cursor = [], None
    while True:
        answer = http.get(f"/v1/runs/{run.id}/artifacts", params={"limit": 4, **({"cursor": cursor} if cursor else {})})
        page = answer.json()
        pages += page["items"]
        cursor = page["next"]
        if cursor is None:
            break
        assert 'rel="next"' in answer.headers["link"]
    shown = hashlib.sha256(http.get(artifact(run, "run.json")).content).hexdigest()  # without the server's folders
    expected = [one.model_dump(mode="json") for one in manifest.artifacts]
    assert pages == [one | {"sha256": shown} if one["path"] == "run.json" else one for one in expected]


def test_a_file_has_its_hash_as_etag_and_is_sent_as_attachment(http: httpx.Client, run: Run) -> None:
    answer = http.get(artifact(run, "output/data.csv"))
    content = bytes(range(256)) * 40
    assert answer.content == content
    assert answer.headers["etag"] == f'"{hashlib.sha256(content).hexdigest()}"'
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["x-content-type-options"] == "nosniff"
    head = http.head(artifact(run, "output/data.csv"))
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(content)))
    again = http.get(artifact(run, "output/data.csv"), headers={"If-None-Match": f'W/{answer.headers["etag"]}, "x"'})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("asked", "status", "start", "end"),
    [
        ("bytes=0-99", 206, 0, 100),
        ("bytes=100-", 206, 100, 10240),
        ("bytes=-40", 206, 10200, 10240),
        ("bytes=-99999", 206, 0, 10240),
        ("bytes=10000-99999", 206, 10000, 10240),
        ("bytes=0-1,5-6", 200, 0, 10240),
        ("bytes=9-3", 200, 0, 10240),
        ("lines=0-1", 200, 0, 10240),
        ("bytes=nonsense", 200, 0, 10240),
    ],
)
def test_ranges(http: httpx.Client, run: Run, asked: str, status: int, start: int, end: int) -> None:
    answer = http.get(artifact(run, "output/data.csv"), headers={"Range": asked})
    assert answer.status_code == status
    assert answer.content == (bytes(range(256)) * 40)[start:end]
    assert answer.headers.get("content-range") == (f"bytes {start}-{end - 1}/10240" if status == 206 else None)


@pytest.mark.parametrize("asked", ["bytes=10240-", "bytes=-0", "bytes=99999-100000"])
def test_a_range_after_the_end_is_refused(http: httpx.Client, run: Run, asked: str) -> None:
    answer = http.get(artifact(run, "output/data.csv"), headers={"Range": asked})
    assert (answer.status_code, answer.headers["content-range"]) == (416, "bytes */10240")
    assert answer.json()["type"] == "urn:mleredux:problem:range"


def test_a_download_resumes_only_if_the_file_is_unchanged(http: httpx.Client, run: Run) -> None:
    etag = http.head(artifact(run, "output/data.csv")).headers["etag"]
    same = http.get(artifact(run, "output/data.csv"), headers={"Range": "bytes=9-", "If-Range": etag})
    other = http.get(artifact(run, "output/data.csv"), headers={"Range": "bytes=9-", "If-Range": '"other"'})
    assert (same.status_code, other.status_code, len(other.content)) == (206, 200, 10240)


def test_an_empty_file_is_served(http: httpx.Client, run: Run) -> None:
    assert http.get(artifact(run, "output/empty")).content == b""


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names_of_any_bytes_can_be_fetched_and_can_not_break_headers(http: httpx.Client, run: Run, name: bytes) -> None:
    path = f"output/{readable(name)}"
    answer = http.get(artifact(run, path))
    assert (answer.status_code, answer.content) == (200, name)
    assert "x-evil" not in answer.headers
    said = answer.headers["content-disposition"]
    assert unquote(said.partition("filename*=UTF-8''")[2]) == path.rpartition("/")[2]
    assert said.count('"') == 2


@pytest.mark.parametrize(
    "path",
    [
        "output/link.txt",
        "output/folder/outside.txt",
        "output/pipe",
        "output",
        "output/",
        "output//data.csv",
        "../outside.txt",
        "output/../../outside.txt",
        "/etc/passwd",
        ".lock",
        "artifacts.json",
        "output/data.csv/x",
        "output\\data.csv",
        "output/\\x64ata.csv",
        "nothing",
        "output/a\0b",
        "x" * 5000,
    ],
)
def test_no_other_file_is_served(http: httpx.Client, run: Run, path: str) -> None:
    url = f"/v1/runs/{run.id}/artifacts/{quote(path, safe='')}"
    answer = http.get(url)
    assert answer.status_code == (422 if "\0" in path else 404)
    assert "secret" not in answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_unescaped_climbing_paths_lead_nowhere(local: LocalServer, run: Run) -> None:
    host, port = local.url.removeprefix("http://").split(":")
    for path in (
        f"/v1/runs/{run.id}/artifacts/../../../outside.txt",
        f"/v1/runs/{run.id}/artifacts/%2e%2e/outside.txt",
    ):
        with socket.create_connection((host, int(port))) as raw:
            raw.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {local.token}\r\n\r\n".encode())
            answer = raw.recv(65536).decode()
        assert " 404 " in answer.splitlines()[0]
        assert "a secret" not in answer


def test_active_content_is_sent_as_text_attachment(http: httpx.Client, run: Run) -> None:
    for name in ("page.html", "picture.svg"):
        answer = http.get(artifact(run, f"output/{name}"))
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert http.get(artifact(run, "output/picture.png")).headers["content-disposition"].startswith("inline;")


def test_our_own_page_may_be_displayed_in_a_sandbox(local: LocalServer, http: httpx.Client) -> None:
    finished = local.execute(local.make_run())
    answer = http.get(artifact(finished, "report.html"))
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-disposition"].startswith("inline;")
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")


def test_a_running_run_lists_current_files_without_hashes(local: LocalServer, http: httpx.Client) -> None:
    going_on = local.make_run()
    (going_on.output_dir / "code").mkdir()
    (going_on.output_dir / "code" / "solve.py").write_text("print(1)")
    (going_on.output_dir / "away").symlink_to("/etc")
    (going_on.path / "secret").write_text("no artifact")
    listed = http.get(f"/v1/runs/{going_on.id}/artifacts").json()["items"]
    assert [(one["path"], one["size"], one["sha256"], one["producer"]) for one in listed] == [
        ("output/code/solve.py", 8, None, "agent")
    ]
    first = http.get(artifact(going_on, "output/code/solve.py"))
    (going_on.output_dir / "code" / "solve.py").write_text("print(22)")
    second = http.get(artifact(going_on, "output/code/solve.py"))
    assert (first.text, second.text) == ("print(1)", "print(22)")
    assert first.headers["etag"] != second.headers["etag"]
    for path in ("run.json", "events.jsonl", ".lock", "secret", "output/away/passwd"):
        assert http.get(artifact(going_on, path)).status_code == 404


def test_a_truncated_file_closes_the_connection(local: LocalServer, http: httpx.Client) -> None:
    going_on = local.make_run()
    file = going_on.output_dir / "large.bin"
    with file.open("wb") as opened:
        opened.truncate(64 << 20)
    got = 0
    with pytest.raises(httpx.RemoteProtocolError), http.stream("GET", artifact(going_on, "output/large.bin")) as answer:
        for piece in answer.iter_raw(1 << 16):
            got += len(piece)
            os.truncate(file, 1 << 20)
    assert got < 64 << 20


def test_files_of_other_users_are_not_found(local: LocalServer, run: Run) -> None:
    headers = {"Authorization": f"Bearer {local.user('mallory')}"}
    with httpx.Client(base_url=local.url, headers=headers, timeout=60) as stranger:
        for path in ("artifacts", "artifacts/output/data.csv", "report", "rollout", "scores", "resources"):
            answer = stranger.get(f"/v1/runs/{run.id}/{path}")
            missing = stranger.get(f"/v1/runs/nothing/{path}")
            assert (answer.status_code, missing.status_code) == (404, 404)
            assert answer.json()["detail"].replace(run.id, "") == missing.json()["detail"].replace("nothing", "")
        assert httpx.get(f"{local.url}/v1/runs/{run.id}/artifacts/output/data.csv", timeout=60).status_code == 401


@pytest.mark.attack
def test_no_document_of_a_run_shows_folders_of_the_server(local: LocalServer, http: httpx.Client) -> None:
    made = local.make_run(agent="dummy")
    record = json.loads((made.path / "run.json").read_bytes())
    folders = [record["spec"]["data_dir"], str(made.path.parent)]
    made.emit(Warned(path=f"{folders[0]}/a.csv", message=f"{folders[1]}/b can't be read."))
    done = local.execute(made)
    listed = http.get(f"/v1/runs/{done.id}/artifacts").json()["items"]
    own = {one["path"]: one["sha256"] for one in listed if "/" not in one["path"]}
    assert {"run.json", "events.jsonl", "report.json"} <= own.keys()
    sent = {path: http.get(artifact(done, path)) for path in own}
    for name in ("events", "report", "archive?format=tar&prefix=r"):
        sent[name] = http.get(f"/v1/runs/{done.id}/{name}")
    assert [(name, folder) for name, one in sent.items() for folder in folders if folder.encode() in one.content] == []
    assert sent["run.json"].json()["spec"] == record["spec"] | {"data_dir": "*" * len(folders[0])}
    assert b"/a.csv" in sent["events.jsonl"].content and b"run.json" in sent["archive?format=tar&prefix=r"].content
    hashed = {path: hashlib.sha256(sent[path].content).hexdigest() for path, digest in own.items() if digest}
    assert hashed == {path: digest for path, digest in own.items() if digest}
    assert sent["run.json"].headers["etag"] == f'"{hashed["run.json"]}"'


SPOILT: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a link": lambda path: path.symlink_to("/etc/passwd"),
    "a loop": lambda path: path.symlink_to(path.name),
    "a folder": Path.mkdir,
    "a file of a terabyte": lambda path: (path.touch(), os.truncate(path, 1 << 40)),
    "nested deeply": lambda path: path.write_text("[" * 100_000),
    "many values": lambda path: path.write_bytes(b"[" + b"{}," * 2_100_000 + b"0]"),
    "a list": lambda path: path.write_text("[1]"),
}


@pytest.mark.attack
@pytest.mark.parametrize("kind", SPOILT)
def test_a_damaged_document_of_a_run_costs_its_own_view_in_time(
    local: LocalServer, http: httpx.Client, kind: str
) -> None:
    done = local.execute(local.make_run(agent="dummy"))
    for name in ("run.json", "artifacts.json", "scores.json", "report.json"):
        path, kept = done.path / name, done.path / "kept"
        if path.exists():
            path.rename(kept)
        SPOILT[kind](path)
        sent = [http.get(f"/v1/runs/{done.id}/{view}") for view in ("artifacts", "scores", "resources")]
        assert {answer.status_code for answer in sent} <= {200, 404, 409}, [answer.text[:200] for answer in sent]
        path.rmdir() if kind == "a folder" else path.unlink()
        if kept.exists():
            kept.rename(path)


def test_results_of_a_run(local: LocalServer, http: httpx.Client) -> None:
    waiting = local.make_run()
    for name in ("report", "rollout", "scores", "resources"):
        answer = http.get(f"/v1/runs/{waiting.id}/{name}")
        assert (answer.status_code, answer.json()["type"]) == (404, "urn:mleredux:problem:not-yet")
    done = local.execute(local.make_run(agent="dummy"))
    assert done.report is not None
    assert http.get(f"/v1/runs/{done.id}/report").json() == done.report.model_dump(mode="json")
    scores = http.get(f"/v1/runs/{done.id}/scores").json()["items"]
    assert scores == [one.model_dump(mode="json") for one in done.scores]
    resources = http.get(f"/v1/runs/{done.id}/resources").json()["items"]
    assert resources == [vars(one) for one in done.resources()]
    (done.logs_dir / "resources.csv").write_text(
        "elapsed,memory,cpu,processes,gpu,gpu_memory\n1,20,0.5,2,,\n3,x,1,1,,\n"
    )
    [sample] = http.get(f"/v1/runs/{done.id}/resources").json()["items"]
    assert list(sample.values())[:4] == [1, 20, 0.5, 2] and [sample] == [vars(one) for one in done.resources()]
    rollout = http.get(f"/v1/runs/{done.id}/rollout")
    assert rollout.status_code == (404 if done.rollout is None else 200)
    failed = local.make_run()
    local.settle(failed.id, "failed")
    answer = http.get(f"/v1/runs/{failed.id}/report")
    assert (answer.status_code, answer.json()["type"]) == (404, "urn:mleredux:problem:not-found")


@settings(max_examples=300, deadline=None)
@given(st.binary(min_size=1, max_size=40).filter(lambda name: b"\0" not in name))
def test_every_name_in_a_manifest_maps_back_to_its_bytes(name: bytes) -> None:
    safe = not any(part in (b"", b".", b"..") for part in name.split(b"/"))
    assert path_of(readable(name)) == (name if safe else None)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=12).filter(lambda part: "/" not in part), min_size=1, max_size=4))
def test_names_in_archives_are_safe_and_reversible(parts: list[str]) -> None:
    path = readable("/".join(parts).encode("utf-8", "surrogatepass"))
    made = archive_name(path)
    assert unquote(made) == path
    for part in made.split("/"):
        assert part not in ("", ".", "..") and part.isprintable() and not set(part) & set('<>:"|?*\\')
    assert not made.startswith("/")
    assert disposition(path, inline=False).isascii()


def test_names_that_are_too_long_for_a_disk_stay_distinct(tmp_path: Path) -> None:
    made = {archive_name("\\" * 250 + str(number)) for number in range(3)}
    assert len(made) == 3
    for name in made:
        (tmp_path / name).touch()
