"""The parser of server-sent events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux_client.errors import UnexpectedAnswer
from mleredux_client.events import MAX_MESSAGE, EventParser, Message


def parsed(*pieces: bytes) -> list[Message]:
    parser = EventParser()
    return [message for piece in pieces for message in parser.feed(piece)]


@pytest.mark.parametrize(
    ("stream", "messages"),
    [
        (b"data: a\n\n", [Message("message", "a", None)]),
        (b"id: 7\nevent: state\ndata: a\ndata: b\n\n", [Message("state", "a\nb", "7")]),
        (b"data:a\r\rdata:  b\r\n\r\n", [Message("message", "a", None), Message("message", " b", None)]),
        (b"id: 1\ndata: a\n\ndata: b\n\n", [Message("message", "a", "1"), Message("message", "b", "1")]),
        (b": comment\n\n:\n\n", []),
        (b"event: empty\n\ndata: a\n\n", [Message("message", "a", None)]),
        (b"data\n\n", [Message("message", "", None)]),
        (b"data: half", []),
        (b"id: 1\x00\ndata: a\n\n", [Message("message", "a", None)]),
        (b"\xef\xbb\xbfdata: a\n\n", [Message("message", "a", None)]),
        ("data: a\u2028b\x85c\n\n".encode(), [Message("message", "a\u2028b\x85c", None)]),
        (b"unknown: x\ndata: \xff\n\n", [Message("message", "\ufffd", None)]),
    ],
)
def test_a_stream_is_read_as_the_standard_says(stream: bytes, messages: list[Message]) -> None:
    assert parsed(stream) == messages


LINES = st.lists(
    st.sampled_from(["data: ä€😀", "data: b", "id: 1", "id: 22", "event: log", ": c", "", "", "retry: 10"]), max_size=12
)


@given(LINES, st.lists(st.sampled_from(["\n", "\r", "\r\n"]), min_size=12, max_size=12), st.data())
def test_where_a_stream_is_cut_into_pieces_makes_no_difference(
    lines: list[str], ends: list[str], draw: st.DataObject
) -> None:
    stream = "".join(line + end for line, end in zip(lines, ends, strict=False)).encode()
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    pieces = [stream[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert parsed(*pieces) == parsed(stream)


def test_the_server_may_say_when_to_come_again() -> None:
    parser = EventParser()
    assert (list(parser.feed(b"retry: 1500\n\nretry: soon\n\n")), parser.retry) == ([], 1.5)


def test_a_message_without_an_end_is_refused_before_it_fills_the_memory() -> None:
    piece = b"x" * 2**20
    with pytest.raises(UnexpectedAnswer, match="more than 16,777,216 characters"):
        parsed(b"data: ", *[piece] * (MAX_MESSAGE // len(piece) + 1))
    with pytest.raises(UnexpectedAnswer):
        parsed(*[b"data: " + piece + b"\n"] * (MAX_MESSAGE // len(piece) + 1))
