"""Parse the engine's stream of a container's output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

Message = tuple[int, bytes, bytes]
"""Stream (1 standard output, 2 standard error), time in the engine's format, and text."""
_REMEMBERED = 50_000
_FULL_MESSAGE = 16 << 10
_HEADER = 8
_TIME = re.compile(r"([^.]+?)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


def messages(blocks: Iterable[bytes]) -> Iterator[list[Message]]:
    """Yield the messages of each block of a stream with timestamps.

    Each has a header of 8 bytes: the first is its stream, the last 4 are its size.
    """
    buffer = bytearray()
    for block in blocks:
        buffer += block
        begin, texts = 0, []
        while len(buffer) - begin >= _HEADER:
            end = begin + _HEADER + int.from_bytes(buffer[begin + 4 : begin + _HEADER], "big")
            if end > len(buffer):
                break
            time, _, text = bytes(buffer[begin + _HEADER : end]).partition(b" ")
            # The engine splits long lines into messages of full size, and may omit the newline after the last message.
            if not text.endswith(b"\n") and len(text) < _FULL_MESSAGE:
                text += b"\n"
            texts.append((buffer[begin], time, text))
            begin = end
        del buffer[:begin]
        if texts:
            yield texts


def without_repeats(pieces: Iterable[list[Message]]) -> Iterator[list[Message]]:
    """Yield the messages of a followed stream without repeats.

    An engine that starts a new log file may send the messages in it a second time. The messages of a stream have unique
    times, in nanoseconds, except that the parts of a long line share a time. So a time that occurred before the
    stream's last time identifies a repeat, even if the clock is set back.
    """
    newest: dict[int, set[bytes]] = {}
    older: dict[int, set[bytes]] = {}
    # By stream: the last time, the number of messages with that time, how many of these were repeated, and the last
    # text.
    states: dict[int, tuple[bytes, int, int | None, bytes]] = {}
    for piece in pieces:
        fresh = []
        for message in piece:
            stream, time, text = message
            last, count, again, before = states.get(stream, (b"", 0, None, b""))
            if time == last:
                if again is not None:
                    again += 1
                    repeated = again <= count
                else:
                    repeated = text == before and text.endswith(b"\n")
                states[stream] = (last, count, again, before) if repeated else (last, count + 1, None, text)
            elif time in newest.setdefault(stream, set()) or time in older.get(stream, ()):
                repeated = True
                states[stream] = (last, count, 0, before)
            else:
                repeated = False
                if len(newest[stream]) >= _REMEMBERED:
                    older[stream], newest[stream] = newest[stream], set()
                newest[stream].add(last)
                states[stream] = (time, 1, None, text)
            if not repeated:
                fresh.append(message)
        if fresh:
            yield fresh


def nanoseconds(time: str) -> int:
    """Convert an RFC 3339 time of the engine to Unix time in nanoseconds; Python parses only microseconds."""
    match = _TIME.fullmatch(time)
    if match is None:
        raise ValueError(f"The engine returned the invalid time {time!r}.")
    whole, fraction, zone = match.groups()
    seconds = datetime.fromisoformat(whole + zone.replace("Z", "+00:00")).timestamp()
    return int(seconds) * 10**9 + int((fraction or "0").ljust(9, "0"))
