"""Range requests for files (RFC 9110, section 14)."""

from __future__ import annotations

import re
from typing import NamedTuple

from mleredux_server.protocol.problems import Problem

_ONE = re.compile(r"bytes\s*=\s*(\d{0,20})\s*-\s*(\d{0,20})", re.IGNORECASE)


class Part(NamedTuple):
    """The part of a file to send: from `start` up to, but not including, `end`."""

    start: int
    end: int


def part_of(header: str | None, if_range: str | None, size: int, etag: str) -> Part | None:
    """Return the requested part of a file.

    Args:
        header: The `Range` header.
        if_range: The `If-Range` header; if it differs from `etag`, the complete file is sent.
        size: Size of the file in bytes.
        etag: The file's ETag, including its quotes.

    Returns:
        None if the complete file is to be sent, which includes requests with several ranges, other units or invalid
        headers.

    Raises:
        Problem: The range starts after the end of the file.
    """
    match = _ONE.fullmatch(header.strip()) if header else None
    if match is None or (if_range is not None and if_range.strip() != etag):
        return None
    first, last = match.groups()
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
            f"The file has {size} bytes; the requested range starts after its end.",
            headers={"Content-Range": f"bytes */{size}", "Accept-Ranges": "bytes"},
        )
    return Part(start, min(end, size))
