# Generated from mleredux_client/_async by generate_sync.py. Change that, not this.
"""Predictions that are graded without an agent, and environments of agents that are built ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mleredux_client import calls
from mleredux_client._sync.http import Http
from mleredux_client._sync.polling import wait_until
from mleredux_client._sync.streams import follow, read_text
from mleredux_client.answers import log_text_of, parse
from mleredux_client.errors import WorkFailed
from mleredux_client.facts import BuildFacts, SubmissionFacts
from mleredux_client.models import BuildRecord, Report, SubmissionRecord

_follow = follow
"""By another name: `follow` is an argument too."""


class Submission(SubmissionFacts):
    """Predictions that somebody handed in."""

    def __init__(self, http: Http, record: SubmissionRecord) -> None:
        super().__init__(record)
        self._http = http
        self._path = f"/v1/submissions/{calls.segment(record.id)}"

    @classmethod
    def _of(cls, http: Http, document: Any) -> Submission:
        return cls(http, parse(SubmissionRecord, document))

    def refresh(self) -> Submission:
        """Ask how it stands."""
        self.record = parse(SubmissionRecord, self._http.json(calls.get(self._path)))
        return self

    def wait(self, timeout: float | None = None) -> Submission:
        """Wait until it is graded, or can't be.

        Raises:
            WaitTimeout: It took longer than so many seconds.
        """

        def seen(document: Any) -> bool:
            self.record = parse(SubmissionRecord, document)
            return self.finished

        if not self.finished:
            wait_until(self._http, self._path, seen, timeout=timeout, what=f"Submission {self.id}")
        return self

    @property
    def report(self) -> Report | None:
        """The grade, as far as the service has told it."""
        return self.record.report

    def result(self) -> Report:
        """The grade.

        Raises:
            WorkFailed: There is none: the service or the task is at fault, not the submission.
        """
        if self.record.report is None:
            raise WorkFailed(
                self.message or f"Submission {self.id} is {self.status} and has no report.",
                hint="A submission that can't be scored has a report that says why; this is something else.",
            )
        return self.record.report

    def delete(self) -> None:
        """Remove it."""
        self._http.send(calls.delete(self._path))


class Build(BuildFacts):
    """The environment of an agent."""

    def __init__(self, http: Http, record: BuildRecord) -> None:
        super().__init__(record)
        self._http = http
        self._path = f"/v1/builds/{calls.segment(record.id)}"

    @classmethod
    def _of(cls, http: Http, document: Any) -> Build:
        return cls(http, parse(BuildRecord, document))

    def refresh(self) -> Build:
        """Ask how it stands."""
        self.record = parse(BuildRecord, self._http.json(calls.get(self._path)))
        return self

    def wait(self, timeout: float | None = None, *, progress: Callable[[Build, str], object] | None = None) -> Build:
        """Wait until it can be used.

        Args:
            timeout: Seconds; for ever where None.
            progress: Told the status, whenever it changes.

        Raises:
            WorkFailed: It could not be built; the log says more.
            WaitTimeout: It took longer.
        """

        def seen(document: Any) -> bool:
            before = self.status
            self.record = parse(BuildRecord, document)
            if progress is not None and self.status != before:
                progress(self, self.status)
            return self.finished

        if not self.finished:
            wait_until(self._http, self._path, seen, timeout=timeout, what=f"Build {self.id}")
        if self.status == "failed":
            raise WorkFailed(self.message or f"Build {self.id} failed.", hint="See `build.log()`.")
        return self

    def log(self, *, follow: bool = False) -> Iterator[str]:
        """The build's log, in pieces; with `follow` until it is finished."""
        path = f"{self._path}/log"
        if not follow:
            yield from read_text(self._http, path)
            return
        for message in _follow(self._http, path):
            yield log_text_of(message)
