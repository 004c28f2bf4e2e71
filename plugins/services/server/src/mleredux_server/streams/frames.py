"""The contents of a file as server-sent events, each with its offset in the file."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mleredux.plugin.artifact import FINAL

HEARTBEAT = b": \n\n"


@dataclass(frozen=True, slots=True)
class Frame:
    """A message.

    Attributes:
        start: Its start offset in the file, in bytes.
        end: The start offset of the next message.
        message: The encoded message.
        number: Number of the event, if it is one.
        final: Whether it reports that the run has ended, at least for now.
    """

    start: int
    end: int
    message: bytes
    number: int | None = None
    final: bool = False


class Framing(Protocol):
    """Splits a file into messages."""

    appends_only: bool
    """Whether written data never changes: a file that becomes shorter is a different one."""

    def frames(self, data: bytes, offset: int, *, last: bool) -> list[Frame]:
        """Return the complete messages in a part of the file.

        Args:
            data: The bytes.
            offset: Their offset.
            last: Whether the data ends the file.
        """


class DamagedLog(ValueError):
    """A line of an event log is not a valid event."""


class EventLines:
    """`events.jsonl`: each complete line is an event; a partial last line is not one yet.

    Args:
        shown: Function applied to the text of each event.
    """

    appends_only = True

    def __init__(self, shown: Callable[[str], str] = str) -> None:
        self._shown = shown

    def frames(self, data: bytes, offset: int, *, last: bool) -> list[Frame]:
        """Return the events of the complete lines.

        Raises:
            DamagedLog: A line is not a valid event.
        """
        complete = []
        for line in data.split(b"\n")[:-1]:
            end = offset + len(line) + 1
            complete.append(_event(self._shown(line.decode(errors="replace")).encode(), offset, end))
            offset = end
        return complete


_LINE_ENDS = {"\u2028".encode(): b"\\u2028", "\u2029".encode(): b"\\u2029", "\u0085".encode(): b"\\u0085"}
"""Escapes for characters that some clients treat as line ends; they occur only in JSON strings."""


def _event(line: bytes, start: int, end: int) -> Frame:
    try:
        event = json.loads(line)
        number, kind = int(event["seq"]), str(event["type"])
        final = kind == "state" and event["data"].get("state") in FINAL
        if b"\r" in line or not kind.isprintable():
            raise ValueError("not written by mleredux")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedLog(f"no valid event at byte {start}") from error
    for character, escaped in _LINE_ENDS.items():
        line = line.replace(character, escaped)
    message = b"id: %d\nevent: %s\ndata: %s\n\n" % (number, kind.encode(), line)
    return Frame(start, end, message, number, final)


class LogText:
    """A log as text. Bytes of an incomplete character are held back until the rest arrives."""

    appends_only = False

    def frames(self, data: bytes, offset: int, *, last: bool) -> list[Frame]:
        """Return one message with all complete text."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(data, last)
        end = offset + len(data) - len(decoder.getstate()[0])
        if end == offset:
            return []
        message = b"id: %d\nevent: log\ndata: %s\n\n" % (end, json.dumps({"text": text}).encode())
        return [Frame(offset, end, message)]


def end_message(status: str) -> bytes:
    """Return the last message of a stream; without an id, so that no client resumes from it."""
    return b"event: end\ndata: %s\n\n" % json.dumps({"status": status}).encode()
