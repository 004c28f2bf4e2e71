"""Pages of lists."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from mleredux_server.problems import Problem

_Item = TypeVar("_Item")


class Page(BaseModel, Generic[_Item]):
    """One page of a list; `next` is the cursor of the page after it."""

    items: list[_Item]
    next: str | None = None


def make_cursor(*place: Any) -> str:
    """A cursor that says where a page ended; opaque to clients."""
    return base64.urlsafe_b64encode(json.dumps(place, default=str).encode()).decode().rstrip("=")


def read_cursor(cursor: str, length: int) -> list[Any]:
    """Where the page before ended.

    Raises:
        Problem: It is none of ours.
    """
    try:
        place = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error, UnicodeError):
        place = None
    if not isinstance(place, list) or len(place) != length:
        raise Problem("invalid", "The cursor is none of this list's.", hint="Leave it out to begin at the start.")
    return place
