"""Pages of lists."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Annotated, Any, Generic, TypeVar, TypeVarTuple
from urllib.parse import urlencode

from fastapi import Depends, Query, Request, Response
from pydantic import BaseModel
from sqlalchemy import Select
from sqlalchemy.orm import InstrumentedAttribute

from mleredux_server.protocol.problems import Problem

_Item = TypeVar("_Item")
_Row = TypeVar("_Row")
_Columns = TypeVarTuple("_Columns")
LONGEST_CURSOR = 2000


class Page(BaseModel, Generic[_Item]):
    """One page of a list; `next` is the cursor of the next page."""

    items: list[_Item]
    next: str | None = None


class Paging:
    """Paging parameters of a list, as a dependency: `paging: Pages`.

    Attributes:
        limit: Maximum number of items per page.
        cursor: Where the previous page ended, if there was one.
    """

    def __init__(
        self,
        request: Request,
        response: Response,
        limit: Annotated[int, Query(ge=1, le=500, description="Maximum number of items per page.")] = 50,
        cursor: Annotated[
            str | None, Query(max_length=LONGEST_CURSOR, description="`next` of the previous page.")
        ] = None,
    ) -> None:
        self._request, self._response = request, response
        self.limit, self.cursor = limit, cursor

    def place(self, *kinds: type) -> list[Any] | None:
        """Return the position at which the previous page ended, for a cursor of `make_cursor`; None for the first page.

        Raises:
            Problem: The cursor is not from this list.
        """
        if self.cursor is None:
            return None
        place = read_cursor(self.cursor, len(kinds))
        for value, kind in zip(place, kinds, strict=True):
            if kind is not object and type(value) is not kind:
                raise bad_cursor()
        return place

    def linked(self, cursor: str | None) -> str | None:
        """Add the next page to the response's `Link`; return the cursor."""
        if cursor is not None:
            parameters = [(name, value) for name, value in self._request.query_params.multi_items() if name != "cursor"]
            query = urlencode([*parameters, ("cursor", cursor)])
            self._response.headers["Link"] = f'<{self._request.url.path}?{query}>; rel="next"'
        return cursor

    def cut(self, rows: Sequence[_Row], place: Callable[[_Row], Any]) -> tuple[Sequence[_Row], str | None]:
        """Return this page's rows and the next cursor, given up to `limit` + 1 queried rows."""
        if len(rows) <= self.limit:
            return rows, None
        key = place(rows[self.limit - 1])
        cursor = make_cursor(*key) if isinstance(key, tuple) else make_cursor(key)
        return rows[: self.limit], self.linked(cursor)

    def in_order(self, query: Select[*_Columns], column: InstrumentedAttribute[str]) -> Select[*_Columns]:
        """Add to a query the order of a unique column, the start of this page, and the limit of `limit` + 1 rows."""
        query = query.order_by(column).limit(self.limit + 1)
        place = self.place(str)
        return query.where(column > place[0]) if place else query

    def page(self, rows: Sequence[_Row], place: Callable[[_Row], Any], view: Callable[[_Row], _Item]) -> Page[_Item]:
        """Return this page like `cut`, with each row converted to its view."""
        shown, cursor = self.cut(rows, place)
        return Page(items=[view(row) for row in shown], next=cursor)

    def page_of_all(
        self, rows: Iterable[_Row], key: Callable[[_Row], str], view: Callable[[_Row], _Item]
    ) -> Page[_Item]:
        """Return this page, given all rows in order of their keys."""
        place = self.place(str)
        after = [row for row in rows if not place or key(row) > place[0]]
        return self.page(after[: self.limit + 1], key, view)

    def page_by_number(self, rows: Iterable[_Row], view: Callable[[_Row], _Item]) -> Page[_Item]:
        """Return this page, given all rows in an order without keys; the cursor is the number of previous rows."""
        place = self.place(int)
        start = max(0, place[0]) if place else 0
        numbered = list(islice(enumerate(rows, 1), start, start + self.limit + 1))
        return self.page(numbered, lambda pair: pair[0], lambda pair: view(pair[1]))


Pages = Annotated[Paging, Depends()]


def make_cursor(*place: Any) -> str:
    """Return a cursor for the end of a page; opaque to clients."""
    return base64.urlsafe_b64encode(json.dumps(place, default=str).encode()).decode().rstrip("=")


def read_cursor(cursor: str, length: int) -> list[Any]:
    """Return the position at which the previous page ended.

    Raises:
        Problem: It is not a valid cursor.
    """
    try:
        place = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError, binascii.Error, UnicodeError):
        place = None
    if not isinstance(place, list) or len(place) != length:
        raise bad_cursor()
    if any(isinstance(part, str) and ("\0" in part or not part.isprintable()) for part in place):
        raise bad_cursor()
    return place


def bad_cursor() -> Problem:
    """Return the error for an invalid cursor."""
    return Problem("invalid", "The cursor is not from this list.", hint="Omit it to start at the beginning.")
