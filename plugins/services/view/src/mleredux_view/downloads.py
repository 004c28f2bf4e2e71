"""File responses: files written by agents are never served as pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Send

from mleredux_view.logfile import data_end

_PIECE = 256 << 10
_POLICY = "sandbox; default-src 'none'"


def sent(file: BinaryIO, name: str, image: str | None = None) -> Response:
    """Send an open file: inline if it is an image on a page, otherwise as a download, in a sandbox without any
    permissions.

    Args:
        image: The media type, if the file is an image.
    """
    headers = {
        "Content-Disposition": f"{'inline' if image else 'attachment'}; filename*=UTF-8''{quote(name[:200], safe='')}",
        "Content-Security-Policy": _POLICY,
        "Content-Length": str(length := data_end(file)),
        "X-Content-Type-Options": "nosniff",
    }
    return SentFile(_pieces(file, length), headers=headers, media_type=image or "application/octet-stream")


class SentFile(StreamingResponse):
    """A response that sends a file in chunks."""

    def __init__(self, pieces: Iterator[bytes], **kwargs: Any) -> None:
        super().__init__(pieces, **kwargs)
        self.pieces = pieces

    async def stream_response(self, send: Send) -> None:
        """Send the file. If it was truncated meanwhile, the response stays incomplete, so that the client notices."""
        remaining = int(self.headers["content-length"])

        async def send_part(message: Message) -> None:
            nonlocal remaining
            remaining -= len(message.get("body", b""))
            if message.get("more_body", True) or remaining == 0:
                await send(message)

        await super().stream_response(send_part)


def _pieces(file: BinaryIO, remaining: int) -> Iterator[bytes]:
    with file:
        file.seek(0)
        while remaining > 0 and (piece := file.read(min(_PIECE, remaining))):
            remaining -= len(piece)
            yield piece
