"""What can't be said alike in both worlds: pausing, and doing several things at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

async_sleep = asyncio.sleep
sleep = time.sleep


async def async_each(function: Callable[[T], Awaitable[R]], items: Iterable[T], at_once: int) -> list[R]:
    """Results in the order of the items; after a failure nothing new is begun."""
    waiting = asyncio.Semaphore(at_once)

    async def one(item: T) -> R:
        async with waiting:
            return await function(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


def each(function: Callable[[T], R], items: Iterable[T], at_once: int) -> list[R]:
    """Results in the order of the items; after a failure nothing new is begun."""
    with ThreadPoolExecutor(at_once, thread_name_prefix="mleredux") as pool:
        futures = [pool.submit(function, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
