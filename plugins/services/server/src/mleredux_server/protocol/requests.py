"""HTTP semantics common to all requests: `HEAD`, `If-Match`, and unknown query parameters."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any
from weakref import WeakValueDictionary

import anyio
from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mleredux_server.protocol.etags import matches
from mleredux_server.protocol.problems import Problem, answer

_SAFE = ("GET", "HEAD", "OPTIONS")


def check_parameters(request: Request) -> None:
    """Refuse unknown query parameters, and repeated ones that the route accepts only once.

    Raises:
        Problem: There is such a parameter; the message names it, and suggests a similar name.
    """
    dependant = getattr(request.scope.get("route"), "dependant", None)
    if dependant is None or not request.url.path.startswith("/v1/"):
        return
    known = _parameters(dependant)
    errors = []
    for name in request.query_params:
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.5)
            meant = f" Did you mean {near[0]}?" if near else f" Available: {', '.join(sorted(known)) or 'none'}."
            errors.append({"field": name[:100], "message": f"There is no such query parameter.{meant}"})
        elif not known[name] and len(request.query_params.getlist(name)) > 1:
            errors.append({"field": name, "message": "The query parameter must not be repeated."})
    if errors:
        raise Problem("invalid", f"{errors[0]['field']}: {errors[0]['message']}", errors=errors)


def _parameters(dependant: Any) -> dict[str, bool]:
    """Return the query parameters of a route by name, with whether each accepts several values."""
    known = {field.alias: "list[" in str(field.field_info.annotation) for field in dependant.query_params}
    for each in dependant.dependencies:
        known |= _parameters(each)
    return known


class Heads:
    """Answers HEAD like GET, without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def first(message: Message) -> None:
            await send(message)
            await send({"type": "http.response.body", "body": b""})

        scope["route"] = await _get(self.app, scope, first)  # for the log and the metrics


class Preconditions:
    """Refuses a change with `If-Match` by a client that has not seen the current state of the resource.

    For a resource without GET, the state of its parent resource counts: for a cancellation, that of the run. Changes
        with this header are serialized for each kind of resource.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        tags = Headers(scope=scope).getlist("if-match") if scope["type"] == "http" else []
        parts = scope.get("path", "").split("/")[1:]
        if not tags or scope["method"] in _SAFE or parts[0] != "v1" or len(parts) < 3:
            await self.app(scope, receive, send)
            return
        body = [await receive()]
        while body[-1].get("more_body"):
            body.append(await receive())

        async def again() -> Message:
            return body.pop(0) if body else await receive()

        lock = self._locks.setdefault(parts[1], anyio.Lock())  # a resource may have several names
        async with lock:
            problem = await self._refused(scope, ", ".join(tags))
            handle = self.app if problem is None else answer(Request(scope), problem)
            await handle(scope, again, send)

    async def _refused(self, scope: Scope, tags: str) -> Problem | None:
        path = scope["path"]
        while True:
            start: dict[str, Any] = {}

            async def first(message: Message, start: dict[str, Any] = start) -> None:
                start.update(message)

            route = await _get(self.app, {**scope, "path": path, "raw_path": path.encode(), "query_string": b""}, first)
            above = path.rpartition("/")[0]
            if (start["status"] == 405 or route is None) and above != "/v1":
                path = above
                continue
            if start["status"] >= 500:
                return Problem("unavailable", "The resource can't be compared now.", hint="Try again in a moment.")
            tag = Headers(raw=start["headers"]).get("etag")
            if start["status"] in (401, 429) or (start["status"] == 200 and tag and matches(tags, tag)):
                return None
            hint = "Fetch it again and retry."
            return Problem("precondition-failed", "The resource has changed since you fetched it.", hint=hint)


async def _get(app: ASGIApp, scope: Scope, first: Callable[[Message], Any]) -> Any:
    """Get a whole resource, and return its route; call `first` with the start of the response, and ignore the rest.

    The response ends on its own after the client's disconnect, even if it is a stream.
    """
    own = (b"if-match", b"if-none-match", b"content-length", b"content-type") if scope["method"] != "HEAD" else ()
    skipped = (b"range", b"if-range", *own)
    headers = [(name, value) for name, value in scope["headers"] if name.lower() not in skipped]
    ended, body = anyio.Event(), [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if body:
            return body.pop()
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            await first(message)
            ended.set()

    getting = {**scope, "method": "GET", "headers": headers}
    await app(getting, receive, send)
    return getting.get("route")
