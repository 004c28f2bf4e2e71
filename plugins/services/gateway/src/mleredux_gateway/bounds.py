"""Limits on what one agent can use of this program: memory of requests, and open connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

MAX_CONNECTIONS = 256


class Room:
    """A memory budget in bytes for all requests together; a request that does not fit waits.

    Args:
        size: Size in bytes, which no single request may exceed.
    """

    def __init__(self, size: int) -> None:
        self._free = size
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def take(self, size: int) -> AsyncIterator[Callable[[int], Awaitable[None]]]:
        """Reserve bytes for the duration of the block; calling the returned function reduces the reservation."""
        held = size

        async def keep(needed: int) -> None:
            nonlocal held
            async with self._changed:
                self._free += max(0, held - needed)
                held = min(held, needed)
                self._changed.notify_all()

        async with self._changed:
            await self._changed.wait_for(lambda: self._free >= size)
            self._free -= size
        try:
            yield keep
        finally:
            await keep(0)


def bounded(server: web.Server) -> Callable[[], asyncio.Protocol]:
    """Return a protocol factory for an asyncio server, with one protocol per allowed connection; excess connections are
    closed."""
    return lambda: _Door(server)


class _Door(asyncio.Protocol):
    """A protocol that passes a connection to the server once it is established; until then, the server does not count
    it."""

    def __init__(self, server: web.Server) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if len(self._server.connections) >= MAX_CONNECTIONS:
            transport.close()
            return
        handler = self._server()
        transport.set_protocol(handler)
        handler.connection_made(transport)
