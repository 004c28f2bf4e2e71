"""Files that are sent: what an agent wrote is never a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse

_PIECE = 256 << 10
_POLICY = "sandbox; default-src 'none'"


def sent(file: BinaryIO, name: str, image: str | None = None) -> Response:
    """Send an open file: an image that a page draws, everything else as a download, in a sandbox without any rights.

    Args:
        image: The media type of an image.
    """
    headers = {
        "Content-Disposition": f"{'inline' if image else 'attachment'}; filename*=UTF-8''{quote(name[:200], safe='')}",
        "Content-Security-Policy": _POLICY,
        "Content-Length": str(file.seek(0, 2)),
        "X-Content-Type-Options": "nosniff",
    }
    return SentFile(_pieces(file), headers=headers, media_type=image or "application/octet-stream")


class SentFile(StreamingResponse):
    """A file, in pieces."""

    def __init__(self, pieces: Iterator[bytes], **kwargs: Any) -> None:
        super().__init__(pieces, **kwargs)
        self.pieces = pieces


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        left = file.seek(0, 2)
        file.seek(0)
        while left > 0 and (piece := file.read(min(_PIECE, left))):
            left -= len(piece)
            yield piece
