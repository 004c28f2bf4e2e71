"""Common to the protocols: pieces of text, and frames of server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

CREATED = 1_700_000_000
"""Unix time of a conversation's first reply, fixed so that replies are reproducible."""

Frame = bytes
"""Return one server-sent event."""


def sse(data: dict[str, Any], event: str | None = None) -> Frame:
    """Return one server-sent event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def cut(text: str, size: int) -> Iterator[str]:
    """Split a text into pieces of a number of characters."""
    for start in range(0, len(text), size):
        yield text[start : start + size]
