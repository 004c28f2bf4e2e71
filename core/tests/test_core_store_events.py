"""The event log: whatever a crash leaves of it, what was whole is kept and the log goes on."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mleredux._core.store.events import EventLog
from mleredux.errors import MlereduxError
from mleredux.models import Cause, NotSubmitted, State, Unusable
from mleredux.models.events import AgentEnded, Other, StateEntered, Validation

DATA = st.dictionaries(
    st.text(min_size=1, max_size=5).filter(lambda key: key not in ("type_", "self")),
    st.one_of(st.text(max_size=20), st.integers(), st.none(), st.booleans()),
    max_size=3,
)


def make(path: Path, count: int = 4) -> bytes:
    log = EventLog(path)
    for number in range(count):
        log.append("state", text=f"zeile {number}: ü\r\n\x85\u2028 end")
    return path.read_bytes()


def test_a_log_torn_at_any_byte_keeps_every_whole_event_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    whole = make(path)
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        kept = whole[:cut].count(b"\n")
        assert [event.seq for event in EventLog(path).read()] == list(range(kept))
        added = EventLog(path).append("state", after="the crash")
        assert added.seq == kept
        assert [event.seq for event in EventLog(path).read()] == list(range(kept + 1))


@settings(max_examples=60, deadline=None)
@given(st.lists(DATA, max_size=6), st.binary(max_size=40).filter(lambda tail: b"\n" not in tail))
def test_what_is_appended_is_read_back_whatever_half_line_a_crash_left(
    events: list[dict[str, Any]], torn: bytes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        log = EventLog(path)
        for data in events:
            log.append("thing", **data)
        with path.open("ab") as file:
            file.write(torn)
        EventLog(path).append("last")
        read = list(EventLog(path).read())
        assert [event.data for event in read] == [*events, {}]
        assert [event.seq for event in read] == list(range(len(events) + 1))


def test_a_write_that_fails_half_way_does_not_spoil_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    log.append("first")
    real = os.write

    def full(descriptor: int, data: bytes) -> int:
        real(descriptor, bytes(data)[:9])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        log.append("second")
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data)[:7]))
    assert log.append("third, in short writes").seq == 1
    monkeypatch.undo()
    assert [event.type for event in log.read()] == ["first", "third, in short writes"]


def test_threads_append_without_gaps(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    threads = [threading.Thread(target=lambda: [log.append("x") for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event.seq for event in log.read()] == list(range(80))


def test_a_reader_never_sees_half_an_event(tmp_path: Path) -> None:
    path, stop, seen = tmp_path / "events.jsonl", threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            seen.append([event.seq for event in EventLog(path).read()])

    reader = threading.Thread(target=read)
    reader.start()
    log = EventLog(path)
    for _ in range(60):
        log.append("x", filler="y" * 9000)
    stop.set()
    reader.join()
    assert all(numbers == list(range(len(numbers))) for numbers in seen)


def test_a_line_that_is_no_event_is_named(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    whole = make(path)
    path.write_bytes(b"scribbled\n" + whole)
    with pytest.raises(MlereduxError, match="damaged in line 1"):
        list(EventLog(path).read())


def test_events_are_plain_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    make(path)
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")[:-1]):
        assert json.loads(line)["seq"] == number


OLD = (
    ("state", {"state": "running"}),
    ("agent", {"status": "started", "handle": "7", "started_at": 12.5}),
    ("stage", {"stage": "running", "status": "finished", "seconds": 2.0, "submission": None,
               "outcome": {"exit_code": 0, "cause": None, "seconds": 1.5}, "problem": "does not exist"}),
    ("gateway", {"status": "closed", "use": {"calls": 3}}),
    ("state", {"state": "failed", "cause": "task_broken", "message": "So it is."}),
)  # fmt: skip


def write(path: Path, events: tuple[tuple[str, dict[str, Any]], ...]) -> None:
    lines = [
        json.dumps({"seq": number, "time": "2026-11-20T10:00:00Z", "type": type_, "data": data}) + "\n"
        for number, (type_, data) in enumerate(events)
    ]
    path.write_text("".join(lines), encoding="utf-8")


def test_logs_of_contract_1_and_events_of_newer_versions_are_folded(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    newer = (
        ("state", {"state": "paused"}),
        ("moon", {"phase": "full"}),
        ("validation", {"valid": True, "message": "", "x": 1}),
    )
    write(path, (*OLD, *newer))
    log = EventLog(path)
    told = log.state
    assert (told.state, told.cause, told.message) == (State.FAILED, Cause.TASK_BROKEN, "So it is.")
    assert told.ran is not None and told.outcome is not None and told.outcome.seconds == 1.5
    assert isinstance(told.ran.submitted, NotSubmitted)
    assert (told.agent_started, told.llm and told.llm.calls, told.validations) == (12.5, 3, 1)
    paused, moon, validation = (event.payload for event in log.read(len(OLD) - 1))
    assert isinstance(paused, Other) and isinstance(moon, Other) and moon.phase == "full"
    assert isinstance(validation, Validation) and validation.x == 1


def test_what_another_process_appends_or_restores_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    mine, theirs = EventLog(path), EventLog(path)
    assert mine.state.state is State.QUEUED
    theirs.append(StateEntered(state=State.RUNNING))
    assert mine.state.state is State.RUNNING
    mine.append(AgentEnded(problem="is a link"))
    assert theirs.state.ran is not None and theirs.state.ran.submitted == Unusable(problem="is a link")
    write(path, OLD)
    assert mine.state == theirs.state and mine.state.state is State.FAILED
