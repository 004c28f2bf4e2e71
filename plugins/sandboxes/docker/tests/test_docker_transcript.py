"""The log as recorded from messages: whatever is killed and whatever the engine drops, it is whole or says so."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mleredux_sandbox_docker.transcript import (
    GAP,
    DroppedError,
    Message,
    Transcript,
    messages,
    nanoseconds,
    without_repeats,
)

# Clocks as coarse as they get, so that many messages have one time; few texts, so that many are alike.
TIMES = st.lists(st.integers(0, 6), max_size=20).map(sorted)
TEXTS = st.sampled_from([b"a\n", b"b\n", b"a\na\n", b"long"])


def stamp(tick: int) -> bytes:
    return b"2026-01-02T03:04:05.%09dZ" % tick


@st.composite
def outputs(draw: st.DrawFn) -> list[Message]:
    """Messages of two streams, each in the order of its times, put together in any order."""
    streams = {number: iter(draw(TIMES)) for number in (1, 2)}
    order = draw(st.lists(st.sampled_from([1, 2]), max_size=40))
    return [(number, stamp(tick), draw(TEXTS)) for number in order if (tick := next(streams[number], None)) is not None]


@contextmanager
def opened(folder: Path) -> Iterator[Transcript]:
    """The transcript as a program that was just started opens it."""
    note = os.open(folder / "note", os.O_RDWR | os.O_CREAT)
    try:
        with (folder / "log").open("a+b") as log:
            yield Transcript("c0", log, note, len(b"before\n"))
    finally:
        os.close(note)


def take(folder: Path, found: list[list[Message]], *, complete: bool) -> bool:
    """Take messages down; whether they joined what was there."""
    with opened(folder) as transcript:
        try:
            transcript.append(transcript.beyond_mark(iter(found), complete=complete))
        except DroppedError:
            transcript.append_gap()
            transcript.append(iter(found))
            return False
    return True


def text(found: list[Message]) -> bytes:
    return b"".join(message[2] for message in found)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(output=outputs(), data=st.data())
def test_the_log_is_whole_whatever_is_killed_and_dropped(output: list[Message], data: st.DataObject) -> None:
    taken = data.draw(st.integers(0, len(output)), "messages recorded before the kill")
    noted = data.draw(st.integers(0, taken), "messages noted of these")
    dropped = data.draw(st.integers(0, noted), "messages that the engine has dropped")
    torn = data.draw(st.integers(0, len(text(output[noted:taken]))), "bytes of the rest that reached the log")
    # Nobody can tell a container's first message from the next of the same nanosecond, were the first dropped.
    assume(not dropped or output[0][1] not in [time for _, time, _ in output[dropped:]])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "log").write_bytes(b"before\n")
        assert take(folder, [output[:noted]] if noted else [], complete=False)
        with (folder / "log").open("ab") as log:
            log.write(text(output[noted:taken])[:torn])
        rest = output[dropped:]
        cut = data.draw(st.integers(0, len(rest)), "messages in the first piece")
        joined = take(folder, [piece for piece in (rest[:cut], rest[cut:]) if piece], complete=True)
        log_text = (folder / "log").read_bytes()
        whole = b"before\n" + text(output)
        if joined:
            assert log_text == whole
        else:
            # Only where the mark's message is gone, or can't be told from others of its time: then nothing is lost.
            assert dropped
            last = output[noted - 1]
            of_stream = [message for message in rest if message[0] == last[0]]
            assert not rest[: noted - dropped] or of_stream[0][1] == last[1]
            assert log_text.endswith(GAP + text(rest))
        # The same again changes nothing.
        assert take(folder, [rest] if rest else [], complete=True)
        assert (folder / "log").read_bytes() == log_text


def test_more_written_than_the_engine_keeps_is_said_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"before\n")
    assert take(tmp_path, [[(1, stamp(1), b"one\n")]], complete=False)
    assert not take(tmp_path, [[(1, stamp(3), b"three\n")]], complete=False)
    assert (tmp_path / "log").read_bytes() == b"before\none\n" + GAP + b"three\n"


def test_a_container_that_is_gone_leaves_the_log_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"before\n")
    assert take(tmp_path, [[(1, stamp(1), b"one\n")]], complete=False)
    assert take(tmp_path, [], complete=True)
    assert (tmp_path / "log").read_bytes() == b"before\none\n"


def test_another_containers_note_is_not_taken_for_ones_own(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"before\n")
    assert take(tmp_path, [[(1, stamp(1), b"one\n")]], complete=True)
    with (tmp_path / "log").open("a+b") as log:
        note = os.open(tmp_path / "note", os.O_RDWR)
        again = Transcript("c1", log, note, (tmp_path / "log").stat().st_size)
        again.append(again.beyond_mark(iter([[(1, stamp(1), b"two\n")]]), complete=True))
        os.close(note)
    assert (tmp_path / "log").read_bytes() == b"before\none\ntwo\n"


@settings(deadline=None, derandomize=True)
@given(texts=st.lists(st.binary(max_size=50)), sizes=st.lists(st.integers(1, 30)))
def test_messages_are_the_same_however_the_stream_is_cut_into_blocks(texts: list[bytes], sizes: list[int]) -> None:
    stream = b""
    for body in texts:
        stream += b"\x01\0\0\0" + (len(body) + 31).to_bytes(4, "big") + stamp(7) + b" " + body
    blocks, place = [], 0
    for size in sizes:
        blocks.append(stream[place : place + size])
        place += size
    found = [message for piece in messages([*blocks, stream[place:]]) for message in piece]
    assert found == [(1, stamp(7), body if body.endswith(b"\n") else body + b"\n") for body in texts]


@settings(deadline=None, derandomize=True)
@given(streams=st.lists(st.sampled_from([1, 2]), min_size=1, max_size=30), data=st.data())
def test_what_the_engine_sends_again_at_a_new_file_is_passed_over(streams: list[int], data: st.DataObject) -> None:
    sent = [(stream, stamp(tick), b"same\n") for tick, stream in enumerate(streams)]
    end = data.draw(st.integers(1, len(sent)), "messages sent before the new file")
    begin = data.draw(st.integers(0, end - 1), "first message that is sent again")
    pieces = [sent[:end], *([message] for message in sent[begin:])]
    assert [message for piece in without_repeats(pieces) for message in piece] == sent


def test_parts_of_a_long_line_and_clocks_that_are_set_back_are_no_repeats() -> None:
    sent = [(1, stamp(5), b"y" * 9), (1, stamp(5), b"y" * 9), (1, stamp(5), b"y\n"), (1, stamp(2), b"y\n")]
    assert list(without_repeats([sent])) == [sent]


@pytest.mark.parametrize(
    ("time", "fraction"),
    [
        ("2026-01-02T03:04:05.123456789Z", 123_456_789),
        ("2026-01-02T05:04:05.123456789+02:00", 123_456_789),
        ("2026-01-02T03:04:05.12Z", 120_000_000),
        ("2026-01-02T03:04:05Z", 0),
    ],
)
def test_times_are_read_to_the_nanosecond_in_any_zone(time: str, fraction: int) -> None:
    assert nanoseconds(time) == 1_767_323_045 * 10**9 + fraction


def test_a_time_that_is_none_is_said() -> None:
    with pytest.raises(ValueError, match="returned the invalid time 'yesterday'"):
        nanoseconds("yesterday")
