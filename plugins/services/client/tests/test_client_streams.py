"""Live streams: events and logs, each thing once and in order, whatever breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mleredux_client as sdk
import pytest
from mleredux_client import Run

TIME = "2026-11-21T12:00:00Z"
EVENTS = [
    (number, "state", {"seq": number, "time": TIME, "type": "state", "data": {"state": "läuft 😀", "n": number}})
    for number in range(12)
]
LOG = "".join(f"epoch {number}: größer 😀\n" for number in range(40))
RunOf = Callable[..., Run]


@pytest.mark.parametrize("cuts", [[], [0], [3, 200, 201, 500, 333, 40], [1200], [90] * 5])
def test_events_have_no_gap_and_no_repeat_however_often_the_connection_breaks(
    fake: Any, run_of: RunOf, cuts: list[int]
) -> None:
    run = run_of(status="running")
    fake.serve("GET /v1/runs/run-1", fake.run_document(status="done"))
    fake.serve_stream("/v1/runs/run-1/events", EVENTS, list(cuts))
    events = list(run.events())
    assert [event.seq for event in events] == list(range(12))
    assert events[3].data == {"state": "läuft 😀", "n": 3}
    assert run.status == "done", "known when the events end"
    asked = [a.headers.get("Last-Event-ID") for a in fake.asked if a.path.endswith("events")]
    assert len(asked) == len(cuts) + 1 and asked[0] is None


def test_events_go_on_after_a_number(fake: Any, run_of: RunOf) -> None:
    fake.serve_stream("/v1/runs/run-1/events", EVENTS, [])
    assert [event.seq for event in run_of().events(after=9)] == [10, 11]


def test_a_service_that_repeats_itself_is_not_believed_twice(fake: Any, run_of: RunOf) -> None:
    fake.serve_stream("/v1/runs/run-1/events", [*EVENTS[:3], EVENTS[1], EVENTS[3]], [])
    assert [event.seq for event in run_of().events()] == [0, 1, 2, 3]


def test_a_stream_that_never_gets_anywhere_is_given_up(fake: Any, run_of: RunOf, pauses: list[float]) -> None:
    fake.serve_stream("/v1/runs/run-1/events", EVENTS, [20] * 50)
    with pytest.raises(sdk.Unreachable, match="closed the connection"):
        list(run_of().events())
    assert pauses == [0.5, 1, 2, 4, 8]


def test_a_stream_that_ends_too_early_is_taken_up_again(fake: Any, run_of: RunOf) -> None:
    body = b'id: 0\ndata: {"seq": 0, "time": "2026-11-21T12:00:00Z", "type": "state"}\n\n'
    half = fake.answer(200, body, {"Content-Type": "text/event-stream"}, chunked=True)
    fake.serve_stream("/v1/runs/run-1/events", EVENTS, [])
    fake.fail("GET /v1/runs/run-1/events", half)
    assert [event.seq for event in run_of().events()] == list(range(12))


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((200, b"<html>", {"Content-Type": "text/html"}), "not an event stream"),
        ((200, b"data: {\n\n", {"Content-Type": "text/event-stream"}), "not JSON"),
        ((200, b'data: {"seq": "x"}\n\n', {"Content-Type": "text/event-stream"}), "not a valid Event"),
    ],
)
def test_a_stream_of_something_else_is_an_error(fake: Any, run_of: RunOf, answer: Any, sentence: str) -> None:
    run = run_of()
    fake.fail("GET /v1/runs/run-1/events", fake.answer(*answer))
    with pytest.raises(sdk.UnexpectedAnswer, match=sentence):
        list(run.events())


def test_events_so_far_are_pages(fake: Any, run_of: RunOf) -> None:
    def route(asked: Any) -> Any:
        after = int(asked.query.get("cursor", asked.query["after"])[0])
        items = [event for number, _, event in EVENTS if number > after][:5]
        return fake.said({"items": items, "next": str(items[-1]["seq"]) if items[-1]["seq"] < 11 else None})

    run = run_of(status="running")
    fake.routes["GET /v1/runs/run-1/events"] = route
    assert [event.seq for event in run.events(follow=False)] == list(range(12))
    assert [event.seq for event in run.events(after=4, follow=False)] == list(range(5, 12))


@pytest.mark.parametrize("ranges", [True, False])
def test_a_log_is_read_whole_where_the_connection_breaks_even_within_a_letter(
    fake: Any, run_of: RunOf, ranges: bool
) -> None:
    run = run_of()
    name = "GET /v1/runs/run-1/logs/agent.log"
    content = LOG.encode()
    fake.serve_file("/v1/runs/run-1/logs/agent.log", content, cut=311, tag=False)
    if not ranges:
        fake.serve_file("/v1/runs/run-1/logs/agent.log", content, tag=False)
        fake.routes[name] = lambda _asked: fake.answer(200, content)
        fake.fail(name, fake.answer(200, content, cut=15), fake.answer(200, content, cut=313))
    assert "".join(run.logs()) == LOG


def test_a_log_is_followed_by_its_offsets(fake: Any, run_of: RunOf) -> None:
    pieces, offset = [], 0
    for line in LOG.splitlines(keepends=True):
        offset += len(line.encode())
        pieces.append((offset, "log", {"text": line}))
    fake.serve_stream("/v1/runs/run-1/logs/agent.log", pieces, [500, 100, 700])
    assert "".join(run_of(status="running").logs(follow=True)) == LOG


def test_a_log_is_waited_for_as_long_as_the_run_may_still_write_it(fake: Any, run_of: RunOf) -> None:
    run = run_of(status="queued")
    path = "/v1/runs/run-1/logs/agent.log"
    fake.serve_stream(path, [(3, "log", {"text": "hey"})], [])
    fake.fail(f"GET {path}", fake.problem(404, "not-yet"), fake.problem(404, "not-found"))
    assert "".join(run.logs(follow=True)) == "hey"
    fake.serve("GET /v1/runs/run-1", fake.run_document(status="cancelled"))
    fake.fail(f"GET {path}", fake.problem(404, "not-found"))
    with pytest.raises(sdk.NotFound):
        list(run.logs(follow=True))
