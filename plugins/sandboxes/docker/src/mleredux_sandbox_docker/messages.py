"""The engine's stream of a container's output, taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

Message = tuple[int, bytes, bytes]
"""Stream (1 standard output, 2 standard error), time as the engine writes it, and text."""
_REMEMBERED = 50_000
_FULL_MESSAGE = 16 << 10
_HEADER = 8
_TIME = re.compile(r"([^.]+?)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


def messages(blocks: Iterable[bytes]) -> Iterator[list[Message]]:
    """The messages of each block of a stream that was asked for with times.

    Each has a header of 8 bytes, the first of which is its stream and the last 4 its size.
    """
    buffer = bytearray()
    for block in blocks:
        buffer += block
        begin, found = 0, []
        while len(buffer) - begin >= _HEADER:
            end = begin + _HEADER + int.from_bytes(buffer[begin + 4 : begin + _HEADER], "big")
            if end > len(buffer):
                break
            time, _, text = bytes(buffer[begin + _HEADER : end]).partition(b" ")
            # The engine cuts long lines into messages of full size, and may forget the line's end after the last.
            if not text.endswith(b"\n") and len(text) < _FULL_MESSAGE:
                text += b"\n"
            found.append((buffer[begin], time, text))
            begin = end
        del buffer[:begin]
        if found:
            yield found


def without_repeats(pieces: Iterable[list[Message]]) -> Iterator[list[Message]]:
    """The messages of a followed stream, each once.

    An engine that begins a new file for its log may send what is in there already a second time. A stream's messages
    have times of their own, to the nanosecond, but for the parts of a long line, which share one. So a time that came
    before the stream's last one tells a repeat; no clock that is set back does.
    """
    newest: dict[int, set[bytes]] = {}
    older: dict[int, set[bytes]] = {}
    # Of each stream: the last time, the messages of that time, how many of these came again, and the last text.
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
    """Unix time in nanoseconds of one of the engine's RFC 3339 times, which Python reads to microseconds only."""
    found = _TIME.fullmatch(time)
    if found is None:
        raise ValueError(f"The engine gives {time!r} for a time.")
    whole, fraction, zone = found.groups()
    seconds = datetime.fromisoformat(whole + zone.replace("Z", "+00:00")).timestamp()
    return int(seconds) * 10**9 + int((fraction or "0").ljust(9, "0"))
