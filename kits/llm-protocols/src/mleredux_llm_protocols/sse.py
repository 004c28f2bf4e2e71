"""Write server-sent events as bytes, and split them without changing them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

DONE = b"data: [DONE]\n\n"
"""The last event of a stream of chat completions."""
_MAX_FRAME = 32 << 20
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")


class Splitter:
    """Splits bytes into server-sent events, however they are chunked."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield complete events, each with the blank line at its end.

        Raises:
            ValueError: An event is too large.
        """
        whole, position = self._rest + data, 0
        for end in _BLANK_LINE.finditer(whole):
            yield whole[position : end.end()]
            position = end.end()
        self._rest = whole[position:]
        if len(self._rest) > _MAX_FRAME:
            raise ValueError("an event of the stream is too large")

    def rest(self) -> bytes:
        """Return the bytes after the last complete event."""
        return self._rest


def content_of(frame: bytes) -> dict[str, Any] | None:
    """Return the JSON object of an event; None if it contains none (`[DONE]`, comments)."""
    lines = [line[5:].strip() for line in frame.splitlines() if line.startswith(b"data:")]
    try:
        content = json.loads(b"\n".join(lines))
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def encode(content: dict[str, Any]) -> bytes:
    """Return an event, named by the `type` of its content if that has one."""
    name = f"event: {content['type']}\n" if "type" in content else ""
    return f"{name}data: {json.dumps(content)}\n\n".encode()
