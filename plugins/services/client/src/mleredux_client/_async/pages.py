"""Long lists, fetched page by page while they are read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mleredux_client import calls
from mleredux_client._async.http import AsyncHttp
from mleredux_client.errors import UnexpectedAnswer
from mleredux_client.frames import RUN_COLUMNS, Listing, frame, row_of

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


class AsyncPager(Generic[T]):
    """A list on the server, fetched lazily; each iteration sends new requests."""

    def __init__(
        self,
        http: AsyncHttp,
        path: str,
        make: Callable[[Any], T],
        params: Mapping[str, Any] | None = None,
        *,
        page_size: int = 100,
    ) -> None:
        self._http, self._path, self._make = http, path, make
        self._params = {**(params or {}), "limit": page_size}

    async def __aiter__(self) -> AsyncIterator[T]:
        cursor: str | None = None
        while True:
            items, following = await self._page(cursor)
            for item in items:
                yield self._make(item)
            if following is None:
                return
            if following == cursor:
                raise UnexpectedAnswer(f"The service's pages of {self._path} form a loop.")
            cursor = following

    async def first(self) -> T | None:
        """Return the first item, or None."""
        items, _ = await self._page(None, limit=1)
        return self._make(items[0]) if items else None

    async def list(self, limit: int | None = None) -> Listing[T]:
        """Return all items, or at most `limit`, as a list that notebooks show as a table."""
        items: Listing[T] = Listing()
        if limit is not None and limit <= 0:
            return items
        async for item in self:
            items.append(item)
            if len(items) == limit:
                break
        return items

    async def to_dataframe(self) -> pd.DataFrame:
        """Return a table with a row per item."""
        columns = RUN_COLUMNS if self._path == "/v1/runs" else ()
        return frame([row_of(item) async for item in self], columns)

    # sync: def _repr_html_(self) -> str:
    # sync:     return self.list(limit=20)._repr_html_()

    def __repr__(self) -> str:
        filters = {name: value for name, value in self._params.items() if name != "limit"}
        return f"<all of {self._path}{f' with {filters}' if filters else ''}>"

    async def _page(self, cursor: str | None, limit: int | None = None) -> tuple[Sequence[Any], str | None]:
        more = {"cursor": cursor, "limit": limit or self._params["limit"]}
        page = await self._http.json(calls.get(self._path, {**self._params, **more}))
        if not isinstance(page, dict) or not isinstance(page.get("items"), list):
            hint = "Check that this is the URL of a mleredux service."
            raise UnexpectedAnswer(f"The service's response to GET {self._path} is not a page.", hint=hint)
        following = page.get("next")
        return page["items"], following if isinstance(following, str) and following else None
