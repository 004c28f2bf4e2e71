"""Answers that are sent in pieces."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping

import anyio
import structlog
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

_LOG = structlog.get_logger()
STUCK_SECONDS = 60.0
"""A client that takes nothing for so long is given up."""


class Incomplete(Exception):
    """What is being sent can't be completed; raised by whoever makes the pieces."""


class Pieces(Response):
    """An answer whose pieces are made while it is sent.

    The next piece is made when the one before is on its way, so that a slow client costs no memory; all ends as soon as
    the client is gone, or takes nothing for a minute.

    Args:
        pieces: Closed at the end, however that comes.
        length: Bytes that are announced; where the pieces are fewer, the connection ends, so that the client sees it.
        closing: Called at the end, also where no piece was asked for.
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
        """Send all pieces, or as many as can be.

        What can't be completed is left so: the server then closes the connection, and the client sees that it broke.
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
            _LOG.warning("an answer was not completed", reason=problem)

    async def _send_all(self, scope: Scope, send: Send) -> str | None:
        """Why it could not be completed; None where it was."""

        async def give(message: Message) -> None:
            with anyio.fail_after(STUCK_SECONDS):
                await send(message)

        sent = 0
        try:
            await give({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if scope["method"] != "HEAD":
                async for piece in self.pieces:
                    await give({"type": "http.response.body", "body": piece, "more_body": True})
                    sent += len(piece)
                if self.length is not None and sent != self.length:
                    return "The file became shorter while it was sent."
            await give({"type": "http.response.body", "body": b"", "more_body": False})
        except Incomplete as error:
            return f"{error}."
        except TimeoutError:
            return f"The client took nothing for {STUCK_SECONDS:.0f} seconds."
        return None
