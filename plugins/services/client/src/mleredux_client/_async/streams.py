"""Live streams that are resumed where they broke, without gaps or repeats."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator

import httpx

from mleredux_client import calls
from mleredux_client._async.http import AsyncHttp
from mleredux_client.answers import unexpected
from mleredux_client.errors import MlereduxApiError, Unavailable
from mleredux_client.events import EventParser, Message
from mleredux_client.pairs import async_sleep
from mleredux_client.retries import Attempts

_LONGEST_ASKED = 60.0
"""Maximum seconds to wait for a stream's `retry`."""


async def follow(http: AsyncHttp, path: str, after: int | None = None) -> AsyncIterator[Message]:
    """Yield messages with ids above `after`, each once and in order, until the server marks the last one.

    Raises:
        MlereduxApiError: The server responds with an error, or is unavailable for longer than retries last.
    """
    attempts = Attempts(http.policy)
    last = after
    while True:
        parser = EventParser()
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        try:
            async with http.stream(calls.Call("GET", path, headers=headers)) as response:
                if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
                    raise unexpected(response, "not an event stream")
                async for piece in response.aiter_bytes():
                    for message in parser.feed(piece):
                        if message.event == "end":
                            return
                        number = _number(message.id)
                        if number is not None and last is not None and number <= last:
                            continue
                        last = number if number is not None else last
                        attempts.progress()
                        yield message
        except (httpx.RequestError, MlereduxApiError) as error:
            pause = attempts.after(error, http.url)
        else:
            ended = Unavailable(f"{http.url} closed a live stream prematurely.", hint="Try again.")
            pause = attempts.after(ended, http.url, again=True)
        await async_sleep(max(pause, min(parser.retry or 0.0, _LONGEST_ASKED)))


async def read_text(http: AsyncHttp, path: str) -> AsyncIterator[str]:
    """Yield the current content of a text resource in pieces; bytes that are not UTF-8 are replaced.

    Raises:
        MlereduxApiError: The server responds with an error, or is unavailable for longer than retries last.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    async for piece in read_bytes(http, path):
        yield decoder.decode(piece)
    if rest := decoder.decode(b"", final=True):
        yield rest


async def read_bytes(http: AsyncHttp, path: str) -> AsyncIterator[bytes]:
    """Yield the current content of a text resource in chunks of bytes; broken connections are resumed.

    Raises:
        MlereduxApiError: The server responds with an error, or is unavailable for longer than retries last.
    """
    attempts = Attempts(http.policy)
    offset = 0
    while True:
        headers = {"Accept": "text/plain", **({"Range": f"bytes={offset}-"} if offset else {})}
        try:
            async with http.stream(calls.Call("GET", path, headers=headers)) as response:
                skipped = offset if response.status_code != 206 else 0  # a server without range requests starts again
                async for piece in response.aiter_bytes():
                    fresh = piece[skipped:]
                    skipped = max(0, skipped - len(piece))
                    offset += len(fresh)
                    if fresh:
                        attempts.progress()
                        yield fresh
            return
        except (httpx.RequestError, MlereduxApiError) as error:
            if isinstance(error, MlereduxApiError) and error.status == 416 and offset:
                return  # everything had already arrived
            pause = attempts.after(error, http.url)
        await async_sleep(pause)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 20 else None
