"""Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html): bytes in, messages out."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from mleredux_client.errors import UnexpectedAnswer

MAX_MESSAGE = 16 * 2**20
"""Maximum characters of one message."""
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Message:
    """One message of a stream.

    Attributes:
        event: Its type; `message` by default.
        data: Its lines, joined.
        id: The last id so far, of this or an earlier message.
    """

    event: str
    data: str
    id: str | None


class EventParser:
    """Parses a stream that arrives in pieces of any size.

    Attributes:
        retry: Seconds to wait before reconnecting, if the server specified it.
    """

    def __init__(self) -> None:
        self.retry: float | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._begun = False
        self._after_cr = False
        self._line: list[str] = []
        self._size = 0
        self._event = ""
        self._data: list[str] = []
        self._id: str | None = None

    def feed(self, piece: bytes) -> Iterator[Message]:
        """Yield the messages that this piece completes.

        Raises:
            UnexpectedAnswer: A message is too long.
        """
        text = self._decoder.decode(piece)
        if not text:
            return
        if not self._begun:
            self._begun, text = True, text.removeprefix("\ufeff")
        if self._after_cr:
            text = text.removeprefix("\n")
            self._after_cr = False
        self._after_cr = text.endswith("\r")
        *lines, rest = _LINE_END.split(text)
        for line in lines:
            whole = "".join((*self._line, line))
            self._line = []
            if whole:
                self._take(whole)
            elif (message := self._complete()) is not None:
                yield message
        if rest:
            self._line.append(rest)
            self._measure(len(rest))

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._measure(len(value))
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and re.fullmatch(r"[0-9]{1,9}", value):
            self.retry = int(value) / 1000

    def _complete(self) -> Message | None:
        data, event = self._data, self._event
        self._data, self._event, self._size = [], "", 0
        return Message(event or "message", "\n".join(data), self._id) if data else None

    def _measure(self, more: int) -> None:
        self._size += more
        if self._size > MAX_MESSAGE:
            raise UnexpectedAnswer(f"The service sent an event of more than {MAX_MESSAGE:,} characters.")
