"""ETags: the hash of what was answered. Answers that did not change are not sent again (304)."""

from __future__ import annotations

import hashlib
from typing import Any

from fastapi import Request
from pydantic import BaseModel
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mleredux_server.problems import Problem

_JSON = "application/json"


class EntityTags:
    """Gives each JSON answer to a GET its ETag, and answers 304 where the client has it already."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        held: Message | None = None
        known = Headers(scope=scope).getlist("if-none-match")

        async def sending(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start":
                if message["status"] == 200 and _wants_tag(MutableHeaders(raw=message["headers"])):
                    held = message
                else:
                    await send(message)
                return
            if held is None:
                await send(message)
                return
            begun, held = held, None
            body = message.get("body", b"")
            if not message.get("more_body"):
                headers = MutableHeaders(raw=begun["headers"])
                headers["ETag"] = tag = tag_of(body)
                if known and matches(", ".join(known), tag, weakly=True):
                    del headers["content-length"], headers["content-type"]
                    begun, message = {**begun, "status": 304}, {**message, "body": b""}
            await send(begun)
            await send(message)

        await self.app(scope, receive, sending)


def tag_of(body: bytes) -> str:
    """The strong ETag of a representation."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def matches(given: str, tag: str, *, weakly: bool = False) -> bool:
    """Whether a header `If-Match` or `If-None-Match` names a tag.

    Args:
        given: The header.
        tag: The current one.
        weakly: Whether `W/"…"` is as good as `"…"`.
    """
    if given.strip() == "*":
        return True
    tags = [part.strip() for part in given.split(",")]
    return tag in ([part.removeprefix("W/") for part in tags] if weakly else tags)


def require_match(request: Request, current: BaseModel) -> None:
    """Refuse a change by somebody who has not seen the current state. To be called inside the changing transaction.

    Args:
        request: Its `If-Match` is looked at; without one, everything goes.
        current: What a GET of it answers now.

    Raises:
        Problem: It is another state.
    """
    given = request.headers.getlist("if-match")
    if given and not matches(", ".join(given), tag_of(current.model_dump_json().encode())):
        raise Problem("precondition-failed", "It was changed since you got it.", hint="Get it again, and decide again.")


def _wants_tag(headers: Any) -> bool:
    return headers.get("content-type", "").startswith(_JSON) and "etag" not in headers
