"""What lies in a file as messages of server-sent events, each with its place in the file."""

from __future__ import annotations

import codecs
import json
from dataclasses import dataclass
from typing import Protocol

from mleredux.plugin.artifact import FINAL

HEARTBEAT = b": \n\n"


@dataclass(frozen=True, slots=True)
class Frame:
    """A message.

    Attributes:
        start: Where it begins in the file, in bytes.
        end: Where what comes after it begins.
        message: As it is sent.
        number: Of an event.
        final: Whether it says that the run is over, for now.
    """

    start: int
    end: int
    message: bytes
    number: int | None = None
    final: bool = False


class Framing(Protocol):
    """How a file becomes messages."""

    appends_only: bool
    """Whether nothing that was written ever changes: a file that becomes shorter is another one."""

    def frames(self, data: bytes, offset: int, *, last: bool) -> list[Frame]:
        """Messages of some bytes of the file, as far as they are whole.

        Args:
            data: The bytes.
            offset: Where they lie.
            last: Whether nothing will come after them.
        """


class DamagedLog(ValueError):
    """A line of an event log is no event."""


class EventLines:
    """`events.jsonl`: each whole line is an event; half a line is none yet."""

    appends_only = True

    def frames(self, data: bytes, offset: int, *, last: bool) -> list[Frame]:
        """Events of the whole lines.

        Raises:
            DamagedLog: A line is none.
        """
        found = []
        for line in data.split(b"\n")[:-1]:
            end = offset + len(line) + 1
            found.append(_event(line, offset, end))
            offset = end
        return found


_LINE_ENDS = {"\u2028".encode(): b"\\u2028", "\u2029".encode(): b"\\u2029", "\u0085".encode(): b"\\u0085"}
"""For clients that take these for ends of lines; they occur in strings of JSON only."""


def _event(line: bytes, start: int, end: int) -> Frame:
    try:
        event = json.loads(line)
        number, kind = int(event["seq"]), str(event["type"])
        final = kind == "state" and event["data"].get("state") in FINAL
        if b"\r" in line or not kind.isprintable():
            raise ValueError("not written by us")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedLog(f"no event at byte {start}") from error
    for character, escaped in _LINE_ENDS.items():
        line = line.replace(character, escaped)
    message = b"id: %d\nevent: %s\ndata: %s\n\n" % (number, kind.encode(), line)
    return Frame(start, end, message, number, final)


class LogText:
    """A log: bytes as text. A character whose bytes are not all there yet waits for them."""

    appends_only = False

    def frames(self, data: bytes, offset: int, *, last: bool) -> list[Frame]:
        """One message with all text that is whole."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(data, last)
        end = offset + len(data) - len(decoder.getstate()[0])
        if end == offset:
            return []
        message = b"id: %d\nevent: log\ndata: %s\n\n" % (end, json.dumps({"text": text}).encode())
        return [Frame(offset, end, message)]


def end_message(status: str) -> bytes:
    """The last message of a stream; without an id, so that nobody goes on from it."""
    return b"event: end\ndata: %s\n\n" % json.dumps({"status": status}).encode()
