"""Responses sent in pieces."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping

import anyio
import structlog
from mleredux.errors import StoreError
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

_LOG = structlog.get_logger()
STUCK_SECONDS = 60.0
"""Seconds after which a client that receives nothing is disconnected."""


class Incomplete(Exception):
    """The response can't be completed; raised by the source of the pieces."""


class Pieces(Response):
    """A response whose pieces are generated while it is sent.

    The next piece is generated after the previous one was sent, so that a slow client uses no memory; the response ends
    when the client disconnects, or receives nothing for a minute.

    Args:
        pieces: Always closed at the end.
        length: Announced number of bytes; if there are fewer, the connection is closed, so that the client notices.
        closing: Called at the end, even if no piece was requested.
    """

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str,
        length: int | None = None,
        closing: Callable[[], None] = lambda: None,
    ) -> None:
        self.pieces, self.length, self.closing = pieces, length, closing
        self.status_code, self.background = status, None
        announced = {"Content-Length": str(length)} if length is not None else {}
        self.body = b""
        self.init_headers({**(headers or {}), **announced, "Content-Type": media_type})
        if length is None and "content-length" in self.headers:
            del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all pieces, or as many as possible.

        An incomplete response stays incomplete: the server closes the connection, and the client notices the error.
        """
        problem: str | None = None
        try:
            async with anyio.create_task_group() as group:

                async def watch() -> None:
                    while (await receive())["type"] != "http.disconnect":
                        pass
                    group.cancel_scope.cancel()

                group.start_soon(watch)
                problem = await self._send_all(scope, send)
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self.pieces.aclose()
            self.closing()
        if problem is not None:
            _LOG.warning("a response was not completed", reason=problem)

    async def _send_all(self, scope: Scope, send: Send) -> str | None:
        """Return the reason why it could not be completed; None if it was."""

        async def send_in_time(message: Message) -> None:
            with anyio.fail_after(STUCK_SECONDS):
                await send(message)

        sent = 0
        try:
            await send_in_time({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if scope["method"] != "HEAD":
                async for piece in self.pieces:
                    await send_in_time({"type": "http.response.body", "body": piece, "more_body": True})
                    sent += len(piece)
                if self.length is not None and sent != self.length:
                    return "The file was truncated while it was sent."
            await send_in_time({"type": "http.response.body", "body": b"", "more_body": False})
        except (Incomplete, StoreError) as error:
            return f"{str(error).rstrip('.')}."
        except TimeoutError:
            return f"The client received nothing for {STUCK_SECONDS:.0f} seconds."
        return None
