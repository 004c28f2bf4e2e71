"""Wait for work on a server."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from mleredux.models.formats import plain

from mleredux_client import calls
from mleredux_client._async.http import AsyncHttp
from mleredux_client.answers import document_of
from mleredux_client.errors import WaitTimeout
from mleredux_client.pairs import async_sleep

_FIRST, _LONGEST, _GROWTH = 0.1, 3.0, 1.4


async def wait_until(
    http: AsyncHttp, path: str, is_final: Callable[[Any], bool], *, timeout: float | None, what: str
) -> None:
    """Poll a resource at growing intervals until it is final; an unchanged state is not sent again.

    Args:
        http: The server.
        path: Path of the resource.
        is_final: Called with each new state; returns whether it is final.
        timeout: Seconds to wait; None: no limit.
        what: Name of the resource in the error.

    Raises:
        WaitTimeout: It took longer.
    """
    until = None if timeout is None else time.monotonic() + timeout
    tag, pause = None, _FIRST
    while True:
        response = await http.send(calls.Call("GET", path, headers={"If-None-Match": tag} if tag else {}))
        if response.status_code != 304:
            tag = response.headers.get("ETag")
            if is_final(document_of(response)):
                return
        remaining = None if until is None else until - time.monotonic()
        if remaining is not None and remaining <= 0:
            message = f"{what} did not finish within {plain(timeout or 0)} seconds."
            raise WaitTimeout(message, hint="It continues; wait again, or cancel it.")
        await async_sleep(pause if remaining is None else min(pause, remaining))
        pause = min(pause * _GROWTH, _LONGEST)
