"""The common base class of runs, experiments, submissions and builds on a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from mleredux_client import calls
from mleredux_client._async.http import AsyncHttp
from mleredux_client._async.polling import wait_until
from mleredux_client.answers import parse
from mleredux_client.durations import Duration, seconds
from mleredux_client.facts import Facts, Record


class AsyncResource(Facts[Record]):
    """A resource on a server. Its attributes are as of the last response; `refresh` updates them."""

    def __init__(self, http: AsyncHttp, record: Record) -> None:
        super().__init__(record)
        self._http = http
        self._path = f"/v1/{self._kind}s/{calls.segment(self.id)}"

    @classmethod
    def _of(cls, http: AsyncHttp, document: Any) -> Self:
        return cls(http, parse(cls._model, document))

    def _update(self, document: Any) -> Self:
        self.record = parse(self._model, document)
        return self

    async def refresh(self) -> Self:
        """Update it from the server."""
        return self._update(await self._http.json(calls.get(self._path)))

    async def wait(
        self, timeout: Duration | None = None, *, progress: Callable[[Self, str], object] | None = None
    ) -> Self:
        """Wait until it is finished, successfully or not.

        Args:
            timeout: Seconds, text such as "2h", or a `timedelta`; None: no limit.
            progress: Called with a short description of the progress, initially and whenever it changes.

        Raises:
            WaitTimeout: It took longer; the work continues.
        """

        def is_final(document: Any) -> bool:
            before = self.describe()
            now = self._update(document).describe()
            if progress is not None and now != before:
                progress(self, now)
            return self.finished

        if progress is not None:
            progress(self, self.describe())
        what = f"{self._kind.capitalize()} {self.id}"
        longest = None if timeout is None else seconds(timeout)
        await wait_until(self._http, self._path, is_final, timeout=longest, what=what)
        return self
