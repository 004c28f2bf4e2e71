"""How clients ask for streams."""

from __future__ import annotations

from fastapi import Request

from mleredux_server.problems import Problem

_LARGEST = 2**63 - 1


def wants_stream(request: Request) -> bool:
    """Whether server-sent events are accepted by name."""
    kinds = (kind.strip().lower() for kind in request.headers.get("accept", "").split(","))
    return any(kind.partition(";")[0].strip() == "text/event-stream" for kind in kinds)


def resumed_at(request: Request, after: int | None) -> int | None:
    """Where a client goes on: `Last-Event-ID`, which browsers send by themselves, before `?after=`.

    Raises:
        Problem: The id is none of ours.
    """
    said = request.headers.get("last-event-id", "").strip()
    if not said:
        return after
    if not (said.isascii() and said.isdecimal() and len(said) < 20 and int(said) <= _LARGEST):
        raise Problem("invalid", "Last-Event-ID is none of this stream's.", hint="Leave it out to begin at the start.")
    return int(said)
