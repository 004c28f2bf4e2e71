"""Events of a run, live over real connections: no gaps, no duplicates, and no client delays another."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import psutil
import pytest
from mleredux._core.store import Run
from mleredux.models import State
from mleredux_server.streams import tail
from mleredux_support.server_local import LocalServer
from sqlalchemy import delete

pytestmark = pytest.mark.timeout(1200)  # a stream that does not end would block forever
STREAM = {"Accept": "text/event-stream"}


@pytest.fixture(scope="module")
def http(local: LocalServer) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {local.token}"}
    limits = httpx.Limits(max_connections=None)
    with httpx.Client(base_url=local.url, headers=headers, timeout=20, limits=limits) as client:
        yield client


def messages(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    """Messages of a stream as `{"id", "event", "data"}`; comments are skipped."""
    found: dict[str, Any] = {}
    for line in answer.iter_lines():
        if not line and found:
            yield {**found, "data": json.loads(found["data"])}
            found = {}
        elif line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            assert name not in found
            found[name] = value


def follow(http: httpx.Client, run: Run, **headers: str) -> list[dict[str, Any]]:
    with http.stream("GET", f"/v1/runs/{run.id}/events", headers={**STREAM, **headers}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        return list(messages(answer))


def numbers(told: list[dict[str, Any]]) -> list[int]:
    return [int(one["id"]) for one in told if one["event"] != "end"]


def until(there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 50
    while not there():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def finish(local: LocalServer, run: Run) -> None:
    for state in (State.PREPARING, State.PRODUCING, State.DONE):
        run.enter(state)
    local.settle(run.id, "done")


def test_a_stream_sends_all_events_and_then_the_end(local: LocalServer, http: httpx.Client) -> None:
    run = local.make_run()
    with ThreadPoolExecutor(1) as pool:
        told = pool.submit(follow, http, run)
        time.sleep(0.3)
        for number in range(50):
            run.emit("notice", number=number, text="größe\r\n\u2028")
        finish(local, run)
        found = told.result(50)
    assert found[-1] == {"event": "end", "data": {"status": "done"}}
    assert numbers(found) == list(range(54))
    assert [one["data"] for one in found[:-1]] == [event.model_dump(mode="json") for event in run.events()]
    assert all(one["event"] == one["data"]["type"] for one in found[:-1])


def test_a_stream_resumes_after_the_last_received_event(local: LocalServer, http: httpx.Client) -> None:
    run = local.make_run()
    for number in range(20):
        run.emit("notice", number=number)
    finish(local, run)
    assert numbers(follow(http, run, **{"Last-Event-ID": "11"})) == list(range(12, 24))
    with http.stream("GET", f"/v1/runs/{run.id}/events", params={"after": 20}, headers=STREAM) as answer:
        assert numbers(list(messages(answer))) == [21, 22, 23]
    assert numbers(follow(http, run, **{"Last-Event-ID": "9999"})) == []
    refused = http.get(f"/v1/runs/{run.id}/events", headers={**STREAM, "Last-Event-ID": "x\t1"})
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:mleredux:problem:invalid")


def test_broken_connections_lose_and_repeat_nothing(local: LocalServer, http: httpx.Client) -> None:
    run = local.make_run()

    def write() -> None:
        for number in range(100):
            run.emit("notice", number=number)
        finish(local, run)

    seen: list[int] = []
    writing = threading.Thread(target=write)
    writing.start()
    ended = False
    while not ended:
        headers = {**STREAM, **({"Last-Event-ID": str(seen[-1])} if seen else {})}
        with http.stream("GET", f"/v1/runs/{run.id}/events", headers=headers) as answer:
            for taken, one in enumerate(messages(answer)):
                if one["event"] == "end":
                    ended = True
                else:
                    seen.append(int(one["id"]))
                if ended or taken == 40:
                    break
    writing.join()
    assert seen == list(range(104))


def test_a_partial_line_is_not_sent(local: LocalServer, http: httpx.Client) -> None:
    run = local.make_run()
    with http.stream("GET", f"/v1/runs/{run.id}/events", headers=STREAM) as answer:
        told = messages(answer)
        assert next(told)["id"] == "0"
        with run.log.path.open("ab") as file:
            file.write(b'{"seq": 1, "time": "2026-01-01T00:00:00Z", "type": "torn", "da')
        time.sleep(0.5)
        other = Run(run.path)  # as after a crash: a partial line is cut off before the next is written
        other.emit("notice", text="whole")
        finish(local, other)
        found = list(told)
    assert [one["data"].get("type") for one in found[:-1]] == ["notice", "state", "state", "state"]
    assert numbers(found) == [1, 2, 3, 4]


def test_a_resumed_cancelled_run_has_not_ended(local: LocalServer, http: httpx.Client) -> None:
    run = local.make_run()
    run.enter(State.CANCELLED, cause="cancelled")
    with ThreadPoolExecutor(1) as pool:
        told = pool.submit(follow, http, run)  # its job is not over: it was resumed
        time.sleep(1)
        assert not told.done()
        finish(local, run)
        assert numbers(told.result(50)) == list(range(5))
    assert numbers(follow(http, run)) == list(range(5))


def test_a_run_that_was_given_up_without_an_event_ends_too(local: LocalServer, http: httpx.Client) -> None:
    run = local.make_run()
    local.settle(run.id, "failed")
    assert follow(http, run)[-1] == {"event": "end", "data": {"status": "failed"}}


def test_a_deleted_run_closes_its_stream_without_an_end_event(local: LocalServer, http: httpx.Client) -> None:
    from mleredux_server.database.tables import Job, RunRow

    run = local.make_run()
    with http.stream("GET", f"/v1/runs/{run.id}/events", headers=STREAM) as answer:
        told = messages(answer)
        assert next(told)["event"] == "state"
        with local.service.database.writing() as session:
            session.execute(delete(RunRow).where(RunRow.id == run.id))
            session.execute(delete(Job).where(Job.id == run.id))
        local.service.store.delete(run)
        assert list(told) == []
    assert http.get(f"/v1/runs/{run.id}/events", headers=STREAM).status_code == 404


def test_pages_of_events(local: LocalServer, http: httpx.Client) -> None:
    run = local.make_run()
    for number in range(9):
        run.emit("notice", number=number)
    first = http.get(f"/v1/runs/{run.id}/events", params={"limit": 4}).json()
    assert [one["seq"] for one in first["items"]] == [0, 1, 2, 3]
    second = http.get(f"/v1/runs/{run.id}/events", params={"limit": 4, "cursor": first["next"]}).json()
    assert [one["seq"] for one in second["items"]] == [4, 5, 6, 7]
    last = http.get(f"/v1/runs/{run.id}/events", params={"limit": 4, "after": 7}).json()
    assert ([one["seq"] for one in last["items"]], last["next"]) == ([8, 9], None)
    assert last["items"] == [event.model_dump(mode="json") for event in run.events(7)]


def test_an_idle_stream_sends_keep_alives(
    local: LocalServer, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "HEARTBEAT_SECONDS", 0.2)
    run = local.make_run()
    with http.stream("GET", f"/v1/runs/{run.id}/events", headers=STREAM) as answer:
        comments = 0
        for line in answer.iter_lines():
            comments += line.startswith(":")
            if comments == 4:
                return


def test_a_revoked_token_stops_following(
    local: LocalServer, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mleredux_server.accounts.identity import hash_of
    from mleredux_server.database.tables import Token, now
    from sqlalchemy import update

    monkeypatch.setattr(tail, "HEARTBEAT_SECONDS", 0.1)
    monkeypatch.setattr(tail, "CHECK_SECONDS", 0.1)
    token, run = local.user("leaving"), local.make_run(user="leaving")
    headers = {**STREAM, "Authorization": f"Bearer {token}"}
    with http.stream("GET", f"/v1/runs/{run.id}/events", headers=headers) as answer:
        told = messages(answer)
        assert next(told)["event"] == "state"
        with local.service.database.writing() as session:
            session.execute(update(Token).where(Token.hash == hash_of(token)).values(revoked_at=now()))
        local.app.state.tokens.forget()
        assert list(told) == []


def test_fifty_followers_share_one_reader(
    local: LocalServer, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    real = tail.Tail._new_frames

    def counted(self: tail.Tail) -> Any:
        nonlocal reads
        reads += 1
        return real(self)

    monkeypatch.setattr(tail.Tail, "_new_frames", counted)
    run = local.make_run()
    with ThreadPoolExecutor(50) as pool:
        told = [pool.submit(follow, http, run) for _ in range(50)]
        until(lambda: sum(one.followers for one in list(local.app.state.hub._tails.values())) == 50)
        for number in range(200):
            run.emit("notice", number=number)
        finish(local, run)
        found = [one.result(50) for one in told]
    assert all(numbers(one) == list(range(204)) for one in found)
    assert reads < 204 + 60  # not fifty times as many


def test_a_client_that_never_reads_blocks_no_other_and_uses_no_memory(local: LocalServer, http: httpx.Client) -> None:
    run = local.make_run()
    host, port = local.url.removeprefix("http://").split(":")
    with socket.socket() as asleep:
        asleep.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        asleep.connect((host, int(port)))
        request = f"GET /v1/runs/{run.id}/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n"
        asleep.sendall(f"{request}Authorization: Bearer {local.token}\r\n\r\n".encode())
        with ThreadPoolExecutor(1) as pool:
            told = pool.submit(lambda: len(follow(http, run)))
            before = psutil.Process().memory_info().rss
            for number in range(100):
                run.emit("notice", number=number, text="x" * (100 << 10))
            store = next(tail for (root, _), tail in local.app.state.hub._tails.items() if root == run.path)
            finish(local, run)
            assert told.result(50) == 105
        until(lambda: store.followers < 2)
        assert store.followers == 1  # the sleeping client is still connected, megabytes behind
        assert store._kept <= tail.KEPT + (110 << 10)
        assert psutil.Process().memory_info().rss - before < 60 << 20  # the one that reads is in this process
    until(lambda: not local.app.state.hub._tails)


def test_streams_of_one_user_have_a_limit(
    local: LocalServer, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mleredux_server.streams.hub.MOST_OF_ONE", 1)
    run = local.make_run()
    with http.stream("GET", f"/v1/runs/{run.id}/events", headers=STREAM) as answer:
        told = messages(answer)
        assert next(told)["id"] == "0"
        refused = http.get(f"/v1/runs/{run.id}/events", headers=STREAM)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")


def test_a_stopping_server_ends_its_streams_immediately(tmp_path_factory: pytest.TempPathFactory) -> None:
    with LocalServer(tmp_path_factory.mktemp("stopping") / "runs").running() as local:
        local.server.config.timeout_graceful_shutdown = 120  # it would wait this long for followers
        run = local.make_run()
        headers = {**STREAM, "Authorization": f"Bearer {local.token}"}
        with httpx.stream("GET", f"{local.url}/v1/runs/{run.id}/events", headers=headers, timeout=50) as answer:
            told = messages(answer)
            assert next(told)["event"] == "state"
            began = time.monotonic()
            local.server.should_exit = True
            assert list(told) == []
    assert time.monotonic() - began < 30
