"""How clients request streams."""

from __future__ import annotations

from fastapi import Request

from mleredux_server.protocol.problems import Problem

_LARGEST = 2**63 - 1


def wants_stream(request: Request) -> bool:
    """Return whether the request explicitly accepts server-sent events."""
    kinds = (kind.strip().lower() for kind in request.headers.get("accept", "").split(","))
    return any(kind.partition(";")[0].strip() == "text/event-stream" for kind in kinds)


def resumed_at(request: Request, after: int | None) -> int | None:
    """Return the position from which a client resumes; `Last-Event-ID`, which browsers send automatically, takes
    precedence over `?after=`.

    Raises:
        Problem: The id is invalid.
    """
    value = request.headers.get("last-event-id", "").strip()
    if not value:
        return after
    if not (value.isascii() and value.isdecimal() and len(value) < 20 and int(value) <= _LARGEST):
        raise Problem("invalid", "Last-Event-ID is not from this stream.", hint="Omit it to start at the beginning.")
    return int(value)
