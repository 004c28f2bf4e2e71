"""Functions that differ between the synchronous and the asynchronous client: pausing, and concurrency."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

async_sleep = asyncio.sleep
sleep = time.sleep


async def async_each(function: Callable[[T], Awaitable[R]], items: Iterable[T], at_once: int) -> list[R]:
    """Return results in the order of the items; after a failure, no further calls are started."""
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
    """Return results in the order of the items; after a failure or Ctrl-C, no further calls are started, and active
    ones stop soon."""
    stop = threading.Event()

    def one(item: T) -> R:
        _working.stop = stop
        check_stopped()
        return function(item)

    pool = ThreadPoolExecutor(at_once, thread_name_prefix="mleredux")
    try:
        futures = [pool.submit(one, item) for item in items]
        for future in wait(futures, return_when=FIRST_EXCEPTION).done:
            if (error := future.exception()) is not None:
                raise error
        return [future.result() for future in futures]
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


class Stopped(Exception):
    """Another call failed, so the result is no longer needed."""


def check_stopped() -> None:
    """Check whether to continue; long work calls this between its steps.

    Raises:
        Stopped: The result is no longer needed.
    """
    stop: threading.Event | None = getattr(_working, "stop", None)
    if stop is not None and stop.is_set():
        raise Stopped


_working = threading.local()
