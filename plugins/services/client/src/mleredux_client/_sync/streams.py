# Generated from mleredux_client/_async by generate_sync.py. Change that, not this.
"""Live streams that are resumed where they broke: no gap, no repeat."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

import httpx

from mleredux_client import calls
from mleredux_client._sync.http import Http
from mleredux_client.answers import unexpected
from mleredux_client.errors import MlereduxApiError, Unavailable
from mleredux_client.events import EventParser, Message
from mleredux_client.pairs import sleep
from mleredux_client.retries import Attempts

_LONGEST_ASKED = 60.0
"""Seconds that a stream's `retry` may make us wait."""


def follow(http: Http, path: str, after: int | None = None) -> Iterator[Message]:
    """Messages with ids above `after`, each once and in order, until the service says that it was the last.

    Raises:
        MlereduxApiError: The service says no, or stays away for longer than retries go on.
    """
    attempts = Attempts(http.policy)
    last = after
    while True:
        parser = EventParser()
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        try:
            with http.stream(calls.Call("GET", path, headers=headers)) as response:
                if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
                    raise unexpected(response, "no stream of events")
                for piece in response.iter_bytes():
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
            ended = Unavailable(f"{http.url} ended a live stream before its end.", hint="Try again.")
            pause = attempts.after(ended, http.url, again=True)
        sleep(max(pause, min(parser.retry or 0.0, _LONGEST_ASKED)))


def read_text(http: Http, path: str) -> Iterator[str]:
    """A text as it is now, in pieces; what is no UTF-8 is replaced.

    Raises:
        MlereduxApiError: The service says no, or stays away for longer than retries go on.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    for piece in read_bytes(http, path):
        yield decoder.decode(piece)
    if rest := decoder.decode(b"", final=True):
        yield rest


def read_bytes(http: Http, path: str) -> Iterator[bytes]:
    """A text as it is now, in pieces of bytes; where the connection broke, it goes on.

    Raises:
        MlereduxApiError: The service says no, or stays away for longer than retries go on.
    """
    attempts = Attempts(http.policy)
    offset = 0
    while True:
        headers = {"Accept": "text/plain", **({"Range": f"bytes={offset}-"} if offset else {})}
        try:
            with http.stream(calls.Call("GET", path, headers=headers)) as response:
                skipped = offset if response.status_code != 206 else 0  # a service without ranges begins again
                for piece in response.iter_bytes():
                    fresh = piece[skipped:]
                    skipped = max(0, skipped - len(piece))
                    offset += len(fresh)
                    if fresh:
                        attempts.progress()
                        yield fresh
            return
        except (httpx.RequestError, MlereduxApiError) as error:
            if isinstance(error, MlereduxApiError) and error.status == 416 and offset:
                return  # all of it had arrived
            pause = attempts.after(error, http.url)
        sleep(pause)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 20 else None
