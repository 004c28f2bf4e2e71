"""Secrets of agents are never disclosed, also while a run is running; everything else keeps its place."""

from __future__ import annotations

import io
import json
import os
import tarfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx
import pytest
from mleredux._core.masks import forms
from mleredux._core.stages.produce import mask_secrets, write_manifest
from mleredux._core.store import Run
from mleredux_support.server import ServerProcess
from mleredux_support.server_local import LocalServer

pytestmark = pytest.mark.timeout(1200)  # a stream that does not end would block forever
KEY = 'sk-"pläntëd"-0123456789-küy'
HALF = len(KEY.encode()) // 2
STARS = b"*" * len(KEY.encode())
JSON_STARS = b"*" * len(json.dumps(KEY)[1:-1])
PLACE = "laboratory"
VARIABLES = {
    "MLEREDUX_PLUGINS": str(Path(__file__).parent / "telling_agent"),
    "TELLING_KEY": KEY,
    "TELLING_PLACE": PLACE,
}
STREAM = {"Accept": "text/event-stream"}
LOG = f"begun in {PLACE}\nkey: ".encode()
WHOLE_LOG = LOG + STARS + b' told\n{"key": "' + JSON_STARS + b'"}\nand again sk-'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("server")
    with ServerProcess(folder / "runs", "--workers", "1", env=VARIABLES) as started:
        yield started


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in VARIABLES.items():
            patch.setenv(name, value)
        patch.setenv("TEAM_TOKEN", "/token-of-the-team")
        patch.setenv("TEAM_KEY", str(Path(__file__)))
        patch.setenv("MOST_TOKENS", "1234567")
        patch.setenv("TEAM_LICENCE", "AB12-CD34-EF56")
        patch.setenv("TEAM_MODE", "offline-only")
        patch.setenv("TEAM_FOLDER", "/somewhere/else")
        offered = ("TEAM_LICENCE", "TEAM_MODE", "TEAM_FOLDER", "LANG")
        with LocalServer(tmp_path_factory.mktemp("local") / "runs", agent_variables=offered).running() as running:
            yield running


@pytest.fixture(scope="module")
def here(local: LocalServer) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {local.token}"}
    with httpx.Client(base_url=local.url, headers=headers, timeout=60) as client:
        yield client


def follow(http: httpx.Client, url: str, after: int | None = None, told: list[bytes] | None = None) -> bytes:
    """Return text of a log's stream until its end; text so far is collected in `told`."""
    found = [] if told is None else told
    headers = {**STREAM, **({"Last-Event-ID": str(after)} if after is not None else {})}
    with http.stream("GET", url, headers=headers) as answer:
        for line in answer.iter_lines():
            if line.startswith('data: {"text"'):
                found.append(json.loads(line.removeprefix("data: "))["text"].encode())
    return b"".join(found)


def wait_for(met: Callable[[], Any], seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := met()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
    return found


class Watched:
    """A client that records all responses."""

    def __init__(self, http: httpx.Client, run_id: str) -> None:
        self.http, self.url = http, f"/v1/runs/{run_id}"
        self.came: list[bytes] = []

    def get(self, path: str, part: str | None = None) -> bytes:
        answer = self.http.get(f"{self.url}/{path}", headers={"Range": f"bytes={part}"} if part else {})
        assert answer.status_code == (206 if part else 200), answer.text
        self.came.append(answer.content)
        return answer.content

    def packed(self) -> dict[str, bytes]:
        """Return the files of an archive, the same in both formats."""
        with ZipFile(io.BytesIO(self.get("archive"))) as zipped:
            found = {name: zipped.read(name) for name in zipped.namelist()}
        with tarfile.open(fileobj=io.BytesIO(self.get("archive?format=tar.gz"))) as tar:
            same = {name: file.read() for name in tar.getnames() if (file := tar.extractfile(name))}
        changing = "logs/resources"
        assert {name: data for name, data in same.items() if not name.startswith(changing)} == {
            name: data for name, data in found.items() if not name.startswith(changing)
        }
        self.came += found.values()
        return found


def test_a_key_printed_in_pieces_is_never_sent_over_http(server: ServerProcess) -> None:
    with (
        httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}, timeout=60) as http,
        ThreadPoolExecutor(1) as pool,
        ExitStack() as ending,
    ):
        made = http.post("/v1/runs", json={"task": "digits", "agent": "telling", "sandbox": "process"})
        assert made.status_code == 201, made.text
        run = Watched(http, made.json()["id"])
        folder = server.runs_dir / made.json()["id"]
        told: list[bytes] = []
        following = pool.submit(follow, http, f"{run.url}/logs/agent.log", None, told)
        ending.callback(http.post, f"{run.url}/cancel")  # else a failing test would wait for followers

        log = folder / "logs" / "agent.log"
        wait_for(lambda: log.exists() and log.read_bytes() == LOG + KEY.encode()[:HALF])
        wait_for(lambda: b"".join(told) == LOG)
        assert run.get("logs/agent.log") == LOG, "what may become a key is not there yet"
        assert run.get("artifacts/logs/agent.log") == LOG
        assert run.get("artifacts/output/notes.txt") == b"key: "
        model = bytes(range(256)) + STARS + bytes(range(256))
        assert run.get("artifacts/output/model.bin") == model
        for begin, end in ((200, 270), (256, 260), (260, 260), (270, 300), (280, 540)):
            assert run.get("artifacts/output/model.bin", f"{begin}-{end}") == model[begin : end + 1]
        packed = run.packed()
        assert (packed["logs/agent.log"], packed["output/notes.txt"]) == (LOG, b"key: ")
        assert packed["output/model.bin"] == model

        (folder / "output" / "told-half").touch()
        wait_for(lambda: b"".join(told).endswith(b'"}\n'))
        whole = WHOLE_LOG.removesuffix(b"and again sk-")
        assert b"".join(told) == run.get("logs/agent.log") == whole
        assert run.get("logs/agent.log", f"{len(LOG) + HALF}-") == whole[len(LOG) + HALF :]
        assert run.packed()["output/notes.txt"] == b"key: " + STARS + b" told\n"

        (folder / "output" / "told").touch()
        assert following.result(120) == WHOLE_LOG
        assert http.get(run.url).json()["status"] == "done"
        assert run.get("logs/agent.log") == log.read_bytes() == WHOLE_LOG
        run.get("events?limit=500")
        run.came += [b"".join(told), *run.packed().values()]
        for form in forms([KEY]):
            assert not [data for data in run.came if form in data or form[:HALF] in data]


def test_a_stream_continues_over_the_masking_without_gap_or_repeat(local: LocalServer, here: httpx.Client) -> None:
    run = local.make_run(agent="telling")
    url = f"/v1/runs/{run.id}/logs/agent.log"
    final = b"one " + STARS + b" two sk" + b"-\n" * 3 + STARS * 40 + b"end s"
    pieces = {  # and what may be told of all that is there by then
        b"one " + KEY.encode()[:7]: b"one ",
        KEY.encode()[7:] + b" two sk": b"one " + STARS + b" two ",
        b"-\n" * 3 + KEY.encode() * 40: final.removesuffix(b"end s"),
        b"end s": final.removesuffix(b"s"),
    }
    with ThreadPoolExecutor(4) as pool, ExitStack() as ending:
        ending.callback(local.settle, run.id, "done")
        told: dict[int, list[bytes]] = {begin: [] for begin in (0, 6, 12, 60)}
        following = [pool.submit(follow, here, url, begin, found) for begin, found in told.items()]
        for piece, shown in pieces.items():
            with run.agent_log.open("ab") as file:
                file.write(piece)
            wait_for(lambda shown=shown: all(b"".join(told[begin]) == shown[begin:] for begin in told))
        assert mask_secrets(run, [KEY]) == 1
        time.sleep(0.3)
        write_manifest(run)
        local.settle(run.id, "done")
        assert run.agent_log.read_bytes() == final
        assert [one.result(60) for one in following] == [final[begin:] for begin in told]


def test_a_run_that_was_given_up_is_masked_when_read(local: LocalServer, here: httpx.Client) -> None:
    run = local.make_run(agent="telling")
    run.agent_log.write_bytes(b"before\n")
    write_manifest(run)
    run.agent_log.write_bytes(b"an attempt more: " + KEY.encode() + b" sk-")
    local.settle(run.id, "failed")
    assert here.get(f"/v1/runs/{run.id}/logs/agent.log").content == b"an attempt more: " + STARS + b" sk-"
    assert follow(here, f"/v1/runs/{run.id}/logs/agent.log") == b"an attempt more: " + STARS + b" sk-"
    artifact = here.get(f"/v1/runs/{run.id}/artifacts/logs/agent.log")
    assert artifact.content == b"an attempt more: " + STARS + b" sk-"


def test_files_in_the_manifest_are_sent_unchanged(local: LocalServer, here: httpx.Client) -> None:
    run = local.make_run(agent="dummy")
    (run.output_dir / "kept.txt").write_text(f"{KEY} is no key of this agent's\n")
    assert here.get(f"/v1/runs/{run.id}/artifacts/output/kept.txt").content.startswith(KEY.encode())
    told = local.make_run(agent="telling")
    (told.output_dir / "kept.txt").write_text(f"{KEY}\n")
    os.utime(told.output_dir / "kept.txt", ns=(0, 0))
    assert here.get(f"/v1/runs/{told.id}/artifacts/output/kept.txt").content == STARS + b"\n", "whatever its time"


def test_nothing_is_fetched_to_determine_an_agent_s_secrets(
    local: LocalServer, here: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    known = local.service.catalogue.agent

    def agent(name: str, *options: Any) -> Any:
        asked.append(name)
        return known(name, *options)

    monkeypatch.setattr(local.service.catalogue, "agent", agent)
    run: Run = local.make_run(agent="repo:https://example.invalid/agent.git@" + "0" * 40)
    shown = f"offline-only /somewhere/else laboratory 1234567 {__file__}"
    run.agent_log.write_text(f"{KEY} /token-of-the-team AB12-CD34-EF56 {shown}\n")
    assert here.get(f"/v1/runs/{run.id}/logs/agent.log").text == f"{STARS.decode()} {'*' * 18} {'*' * 14} {shown}\n"
    assert "telling" in asked and not [name for name in asked if ":" in name]
