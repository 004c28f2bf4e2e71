"""Memory for requests: limited, and released."""

from __future__ import annotations

import asyncio

from mleredux_gateway.bounds import Room


def test_a_request_that_does_not_fit_waits_for_memory() -> None:
    async def scene() -> list[str]:
        room, told = Room(10), []

        async def second() -> None:
            async with room.take(8):
                told.append("second has it")

        async with room.take(10) as keep:
            waiting = asyncio.create_task(second())
            await asyncio.sleep(0)
            told.append("first has all")
            await keep(2)
            await waiting
            told.append("first keeps a little")
        async with room.take(10):
            told.append("all is free again")
        return told

    said = asyncio.run(asyncio.wait_for(scene(), 10))
    assert said == ["first has all", "second has it", "first keeps a little", "all is free again"]
