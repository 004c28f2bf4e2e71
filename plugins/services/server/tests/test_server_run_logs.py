"""Logs of a run: live by byte offsets, or as text; agents print anything."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from mleredux._core.store import Run
from mleredux_support.server_local import LocalServer

pytestmark = pytest.mark.timeout(1200)  # a stream that does not end would block forever
STREAM = {"Accept": "text/event-stream"}


@pytest.fixture(scope="module")
def http(local: LocalServer) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {local.token}"}
    with httpx.Client(base_url=local.url, headers=headers, timeout=20) as client:
        yield client


def follow(http: httpx.Client, run: Run, name: str = "agent.log", after: int | None = None) -> list[dict[str, Any]]:
    """Return messages of a log's stream until its end."""
    headers = {**STREAM, **({"Last-Event-ID": str(after)} if after is not None else {})}
    with http.stream("GET", f"/v1/runs/{run.id}/logs/{name}", headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream"), answer.read()
        text = "".join(answer.iter_text())
    blocks = [block.splitlines() for block in text.split("\n\n") if block and not block.startswith(":")]
    return [dict(line.split(": ", 1) for line in block) for block in blocks]


def text_of(told: list[dict[str, Any]]) -> str:
    assert told[-1]["event"] == "end"
    return "".join(json.loads(one["data"])["text"] for one in told[:-1])


def write(run: Run, data: bytes, name: str = "agent.log") -> None:
    with (run.logs_dir / name).open("ab") as file:
        file.write(data)


def test_the_list_has_files_only(local: LocalServer, http: httpx.Client) -> None:
    run = local.make_run()
    write(run, b"hello")
    write(run, b"built\n", "build.log")
    (run.logs_dir / "away.log").symlink_to("/etc/passwd")
    (run.logs_dir / "folder").mkdir()
    os.mkfifo(run.logs_dir / "pipe.log")
    assert http.get(f"/v1/runs/{run.id}/logs").json() == {
        "items": [{"name": "agent.log", "size": 5}, {"name": "build.log", "size": 6}],
        "next": None,
    }
    for name in ("away.log", "folder", "pipe.log", "..", "%2e%2e%2frun.json", "..%2frun.json"):
        # clients resolve `..`: this is the run itself, whose files are not read because of the link
        assert http.get(f"/v1/runs/{run.id}/logs/{name}").status_code == (409 if name == ".." else 404)
        if name != "..":
            assert http.get(f"/v1/runs/{run.id}/logs/{name}", headers=STREAM).status_code == 404


def test_text_with_ranges(local: LocalServer, http: httpx.Client) -> None:
    run = local.make_run()
    assert http.get(f"/v1/runs/{run.id}/logs/agent.log").json()["type"] == "urn:mleredux:problem:not-yet"
    write(run, "größe \x1b[31mred\x00".encode() + b"\xff\n")
    answer = http.get(f"/v1/runs/{run.id}/logs/agent.log")
    assert answer.content == "größe \x1b[31mred\x00".encode() + b"\xff\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    part = http.get(f"/v1/runs/{run.id}/logs/agent.log", headers={"Range": "bytes=0-3"})
    assert (part.status_code, part.content) == (206, "grö".encode())
    local.settle(run.id, "done")
    assert http.get(f"/v1/runs/{run.id}/logs/build.log").json()["type"] == "urn:mleredux:problem:not-found"


def test_a_log_is_followed_from_before_its_creation_to_its_end(local: LocalServer, http: httpx.Client) -> None:
    run = local.make_run()
    with ThreadPoolExecutor(1) as pool:
        told = pool.submit(follow, http, run)
        time.sleep(0.4)
        whole = "Größe €uro 🦀 \x1b[2J\r\n".encode() * 20
        for start in range(0, len(whole), 7):  # characters are cut in two
            write(run, whole[start : start + 7])
            time.sleep(0.01)
        write(run, b"half: \xe2\x82")
        local.settle(run.id, "done")
        found = told.result(50)
    assert text_of(found) == whole.decode() + "half: \ufffd"
    assert int(found[-2]["id"]) == len(whole) + 8
    assert found[-1] == {"event": "end", "data": '{"status": "done"}'}


def test_it_resumes_from_any_byte_offset_that_was_sent(local: LocalServer, http: httpx.Client) -> None:
    run = local.make_run()
    whole = ("0123456789 größe €\n" * 30_000).encode()
    write(run, whole)
    local.settle(run.id, "done")
    found = follow(http, run)
    assert text_of(found) == whole.decode()
    assert len(found) > 5  # in blocks
    for one in found[:-1:3]:
        rest = follow(http, run, after=int(one["id"]))
        assert text_of(rest).encode() == whole[int(one["id"]) :]
    assert text_of(follow(http, run, after=len(whole))) == ""
    assert text_of(follow(http, run, after=10 * len(whole))) == ""


def test_a_truncated_log_starts_over_and_a_masked_one_continues(local: LocalServer, http: httpx.Client) -> None:
    run = local.make_run()
    write(run, b"first build fails\n")
    with http.stream("GET", f"/v1/runs/{run.id}/logs/agent.log", headers=STREAM) as answer:
        lines = (line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: "))
        told = (json.loads(line) for line in lines)
        assert next(told) == {"text": "first build fails\n"}
        (run.logs_dir / "agent.log").write_bytes(b"second\n")  # the same file, cut
        assert next(told) == {"text": "second\n"}
        other = run.logs_dir / "new"
        other.write_bytes(b"3rd\n")  # another file in its place: that of a new attempt
        other.replace(run.logs_dir / "agent.log")
        assert next(told) == {"text": "3rd\n"}
        other.write_bytes(b"***\nmore\n")  # the masked text, and what was written since the last read
        other.replace(run.logs_dir / "agent.log")
        local.settle(run.id, "done")
        assert list(told) == [{"text": "more\n"}, {"status": "done"}]


def test_a_fast_growing_log_blocks_no_one(local: LocalServer, http: httpx.Client) -> None:
    run = local.make_run()
    whole = b"".join(b"%09d\n" % number for number in range(400_000))
    with ThreadPoolExecutor(3) as pool:
        told = [pool.submit(follow, http, run) for _ in range(3)]
        time.sleep(0.3)
        for start in range(0, len(whole), 1 << 19):
            write(run, whole[start : start + (1 << 19)])
        local.settle(run.id, "done")
        began = time.monotonic()
        assert http.get("/v1").status_code == 200
        assert time.monotonic() - began < 5
        for one in told:
            assert text_of(one.result(50)).encode() == whole
