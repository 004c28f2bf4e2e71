"""Ranges and conditions of requests for files (RFC 9110, chapters 13 and 14)."""

from __future__ import annotations

import re
from typing import NamedTuple

from mleredux_server.problems import Problem

_ONE = re.compile(r"bytes\s*=\s*(\d{0,20})\s*-\s*(\d{0,20})", re.IGNORECASE)
_TAG = re.compile(r'(W/)?"([^"]*)"')


class Part(NamedTuple):
    """What of a file is sent: from `start` to before `end`."""

    start: int
    end: int


def part_of(asked: str | None, if_range: str | None, size: int, etag: str) -> Part | None:
    """Which part of a file is asked for.

    Args:
        asked: The `Range` header.
        if_range: The `If-Range` header; where it is not this tag, the whole file is sent.
        size: Bytes of the file.
        etag: With its quotes.

    Returns:
        None where the whole file is to be sent, also where several ranges, other units, or nonsense are asked for.

    Raises:
        Problem: The file does not reach so far.
    """
    found = _ONE.fullmatch(asked.strip()) if asked else None
    if found is None or (if_range is not None and if_range.strip() != etag):
        return None
    first, last = found.groups()
    if not first and not last:
        return None
    if first:
        start, end = int(first), int(last) + 1 if last else size
        if last and end <= start:
            return None
    else:
        start, end = max(0, size - int(last)), size
    if start >= size:
        raise Problem(
            "range",
            f"The file has {size} bytes; nothing lies in the range that is asked for.",
            headers={"Content-Range": f"bytes */{size}", "Accept-Ranges": "bytes"},
        )
    return Part(start, min(end, size))


def is_known(if_none_match: str | None, etag: str) -> bool:
    """Whether the caller has it already."""
    if if_none_match is None:
        return False
    if if_none_match.strip() == "*":
        return True
    return any(f'"{tag}"' == etag for _, tag in _TAG.findall(if_none_match))
