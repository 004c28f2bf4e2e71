"""All live streams of a server, which end when it stops."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError

from mleredux_server.accounts.security import Caller, Tokens, bearer_of
from mleredux_server.protocol.problems import Problem
from mleredux_server.streams.answer import Pieces
from mleredux_server.streams.tail import Followed, Tail

MOST_STREAMS = 1000
MOST_OF_ONE = 200
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}


class Hub:
    """The tails by the files that they follow; used only on the event loop."""

    def __init__(self) -> None:
        self._tails: dict[tuple[Path, bytes], Tail] = {}
        self._streams: Counter[str] = Counter()
        self._stopped = False

    def answer(
        self,
        request: Request,
        caller: Caller,
        followed: Followed,
        *,
        offset: int = 0,
        after: int | None = None,
    ) -> Pieces:
        """Return a stream of server-sent events.

        Raises:
            Problem: Too many streams are open already.
        """
        if self._streams.total() >= MOST_STREAMS or self._streams[caller.user_id] >= MOST_OF_ONE:
            raise Problem(
                "too-many-requests",
                "Too many live streams are open.",
                hint="Close some, or request a snapshot without `Accept: text/event-stream`.",
                headers={"Retry-After": "10"},
            )
        messages = self._messages(request, caller, followed, offset, after)
        return Pieces(messages, headers=_HEADERS, media_type="text/event-stream; charset=utf-8")

    async def _messages(
        self, request: Request, caller: Caller, followed: Followed, offset: int, after: int | None
    ) -> AsyncGenerator[bytes, None]:
        key = (followed.root, followed.name)
        tail = self._tails.get(key)
        if tail is None or tail.ended:
            tail = Tail(followed)
            self._tails[key] = tail
        if self._stopped:
            return
        self._streams[caller.user_id] += 1
        messages = tail.follow(offset, after=after, may=partial(_can_see, request, followed.project))
        try:
            async for message in messages:
                yield message
        finally:
            await messages.aclose()
            self._streams[caller.user_id] -= 1
            if not tail.followers and self._tails.get(key) is tail:
                del self._tails[key]

    def stop(self) -> None:
        """End all streams; clients reconnect and resume."""
        self._stopped = True
        for tail in self._tails.values():
            tail.stop()


def hub_of(request: Request) -> Hub:
    """Return the hub of the application that handles a request."""
    hub: Hub = request.app.state.hub
    return hub


def end_streams_with(server: uvicorn.Server, app: FastAPI) -> None:
    """End streams as soon as the server is asked to stop, so that it does not wait for clients."""
    shutdown = server.shutdown

    async def stop_first(sockets: list[socket.socket] | None = None) -> None:
        app.state.hub.stop()
        await shutdown(sockets)

    server.shutdown = stop_first  # type: ignore[method-assign]


async def _can_see(request: Request, project: str) -> bool:
    """Return whether the client may still see it, since the token may have been revoked."""
    tokens: Tokens = request.app.state.tokens
    token = bearer_of(request)
    try:
        caller = tokens.remembered(token) or await run_in_threadpool(tokens.caller, token)
    except SQLAlchemyError:
        return True  # checked again soon
    return caller is not None and caller.sees(project)
