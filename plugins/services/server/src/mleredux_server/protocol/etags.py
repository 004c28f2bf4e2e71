"""ETags: the hash of the response. Unchanged responses are not sent again (304)."""

from __future__ import annotations

import hashlib
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_JSON = "application/json"
_TAG = re.compile(r'(W/)?"([^"]*)"')


class EntityTags:
    """Add an ETag to each JSON response to a GET, and return 304 if the client's copy is current."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        held: Message | None = None
        known = Headers(scope=scope).getlist("if-none-match")

        async def sending(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                is_json = headers.get("content-type", "").startswith(_JSON)
                if message["status"] == 200 and is_json and "etag" not in headers:
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
    """Return the strong ETag of a representation."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def matches(header: str, tag: str, *, weakly: bool = False) -> bool:
    """Return whether a header `If-Match` or `If-None-Match` matches a tag.

    Args:
        header: The header.
        tag: The current one.
        weakly: Whether `W/"…"` matches `"…"`.
    """
    if header.strip() == "*":
        return True
    return any(f'"{value}"' == tag and (weakly or not weak) for weak, value in _TAG.findall(header))
