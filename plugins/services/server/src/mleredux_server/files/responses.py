"""Send files: complete, in ranges, or not at all if the client's copy is current."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial

import anyio
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar
from fastapi import Request, Response

from mleredux_server.files.access import Opened
from mleredux_server.files.names import disposition, media_type_of
from mleredux_server.files.ranges import part_of
from mleredux_server.protocol.etags import matches
from mleredux_server.streams.answer import Pieces

PIECE = 256 << 10
_INLINE = frozenset(
    {"text/plain", "text/csv", "application/json", "image/png", "image/jpeg", "image/gif", "image/webp"}
)
_PAGE = "text/html"
_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_SAFE = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": _POLICY, "Cache-Control": "private, no-cache"}
_READ_AT_ONCE, _PACK_AT_ONCE = 8, 4
_readers: RunVar[CapacityLimiter] = RunVar("mleredux_readers")
_packers: RunVar[CapacityLimiter] = RunVar("mleredux_packers")


def readers() -> CapacityLimiter:
    """Return the limiter of threads that read files, separate from those that handle requests."""
    return _limiter(_readers, _READ_AT_ONCE)


def packers() -> CapacityLimiter:
    """Return the limiter of threads that create archives, which takes longer than reading."""
    return _limiter(_packers, _PACK_AT_ONCE)


def _limiter(kept: RunVar[CapacityLimiter], most: int) -> CapacityLimiter:
    try:
        return kept.get()
    except LookupError:
        kept.set(limiter := CapacityLimiter(most))
        return limiter


def tag_of(file: Opened, sha256: str | None = None) -> str:
    """Return the `ETag` of a file: its hash if known, else its size, time and inode."""
    return f'"{sha256}"' if sha256 else f'"{file.size:x}-{file.modified:x}-{file.inode:x}"'


def send_file(
    request: Request,
    file: Opened,
    *,
    path: str,
    media_type: str,
    sha256: str | None = None,
    ours: bool = False,
) -> Response:
    """Return a response that sends a file and closes it.

    Args:
        request: The request, whose ranges and conditions apply.
        file: The open file.
        path: Its path.
        media_type: Media type of its content. Active content is sent as plain text, as a download.
        sha256: SHA-256 of its content, if known.
        ours: Whether mleredux wrote it; if so, a page may be displayed, in a sandbox without scripts.

    Raises:
        Problem: The requested range starts after the end of the file.
    """
    handed_on = False
    try:
        etag = tag_of(file, sha256)
        kind, inline = _shown(media_type_of(media_type), ours)
        headers = {
            **_SAFE,
            "ETag": etag,
            "Accept-Ranges": "bytes",
            "Content-Disposition": disposition(path, inline=inline),
        }
        known = ", ".join(request.headers.getlist("if-none-match"))
        if known and matches(known, etag, weakly=True):
            return Response(status_code=304, headers=headers)
        part = part_of(request.headers.get("range"), request.headers.get("if-range"), file.size, etag)
        start, end = part if part is not None else (0, file.size)
        if part is not None:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.size}"
        file.check(start, end - start)
        handed_on = True
        return Pieces(
            pieces(file, start, end),
            status=200 if part is None else 206,
            headers=headers,
            media_type=kind,
            length=end - start,
            closing=file.close,
        )
    finally:
        if not handed_on:
            file.close()


async def pieces(file: Opened, start: int, end: int) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a file, read outside the event loop; fewer if it was truncated."""
    while start < end:
        most = min(PIECE, end - start)
        piece = await anyio.to_thread.run_sync(partial(file.read, start, most), limiter=readers())
        if not piece:
            return
        start += len(piece)
        yield piece


def _shown(media_type: str, ours: bool) -> tuple[str, bool]:
    """Return the media type to send, and whether a browser may display it."""
    if media_type == _PAGE and ours:
        return "text/html; charset=utf-8", True
    if media_type in _INLINE:
        return f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type, True
    if media_type.startswith("text/") or media_type.endswith("+xml") or "script" in media_type or "xml" in media_type:
        return "text/plain; charset=utf-8", False
    return media_type, False
