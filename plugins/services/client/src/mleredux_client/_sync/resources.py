# Generated from mleredux_client/_async by generate_sync.py. Change that, not this.
"""What a run, an experiment, a submission and a build on a service have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from mleredux_client import calls
from mleredux_client._sync.http import Http
from mleredux_client._sync.polling import wait_until
from mleredux_client.answers import parse
from mleredux_client.durations import Duration, seconds
from mleredux_client.facts import Facts, Record


class Resource(Facts[Record]):
    """Something on a service: what it says is what the service said last; `refresh` asks again."""

    def __init__(self, http: Http, record: Record) -> None:
        super().__init__(record)
        self._http = http
        self._path = f"/v1/{self._kind}s/{calls.segment(self.id)}"

    @classmethod
    def _of(cls, http: Http, document: Any) -> Self:
        return cls(http, parse(cls._model, document))

    def _said(self, document: Any) -> Self:
        self.record = parse(self._model, document)
        return self

    def refresh(self) -> Self:
        """Ask how it stands."""
        return self._said(self._http.json(calls.get(self._path)))

    def wait(self, timeout: Duration | None = None, *, progress: Callable[[Self, str], object] | None = None) -> Self:
        """Wait until it is finished, well or badly.

        Args:
            timeout: Seconds, "2h", or a `timedelta`; for ever where None.
            progress: Told what is going on, in a few words, first and whenever that changes.

        Raises:
            WaitTimeout: It took longer; the work goes on.
        """

        def seen(document: Any) -> bool:
            before = self.describe()
            now = self._said(document).describe()
            if progress is not None and now != before:
                progress(self, now)
            return self.finished

        if progress is not None:
            progress(self, self.describe())
        what = f"{self._kind.capitalize()} {self.id}"
        longest = None if timeout is None else seconds(timeout)
        wait_until(self._http, self._path, seen, timeout=longest, what=what)
        return self
