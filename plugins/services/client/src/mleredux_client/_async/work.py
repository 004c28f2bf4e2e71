"""Predictions that are graded without an agent, and environments of agents that are built ahead of their runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Self

from mleredux_client import calls
from mleredux_client._async.resources import AsyncResource
from mleredux_client._async.streams import follow, read_text
from mleredux_client.answers import log_text_of
from mleredux_client.durations import Duration
from mleredux_client.errors import WorkFailed
from mleredux_client.facts import BuildFacts, SubmissionFacts
from mleredux_client.models.run import BuildRecord, Report, SubmissionRecord

_follow = follow
"""An alias, since `follow` is also an argument."""


class AsyncSubmission(SubmissionFacts, AsyncResource[SubmissionRecord]):
    """Predictions submitted without an agent."""

    @property
    def report(self) -> Report | None:
        """The grade report, if the last response had one."""
        return self.record.report

    def result(self) -> Report:
        """Return the grade.

        Raises:
            WorkFailed: There is no grade because of an error of the server or the task, not of the submission.
        """
        if self.record.report is None:
            if self.message:
                raise WorkFailed(self.message)
            hint = "Submissions that can't be scored have a report; this one failed for another reason."
            raise WorkFailed(f"Submission {self.id} is {self.status} and has no report.", hint=hint)
        return self.record.report

    async def delete(self) -> None:
        """Delete it."""
        await self._http.send(calls.delete(self._path))


class AsyncBuild(BuildFacts, AsyncResource[BuildRecord]):
    """The environment of an agent."""

    async def wait(
        self, timeout: Duration | None = None, *, progress: Callable[[Self, str], object] | None = None
    ) -> Self:
        """Wait until it is ready.

        Raises:
            WorkFailed: It could not be built; see the log.
            WaitTimeout: It took longer.
        """
        await super().wait(timeout, progress=progress)
        if self.status == "failed":
            raise WorkFailed(self.message or f"Build {self.id} failed.", hint="See `build.log()`.")
        return self

    async def log(self, *, follow: bool = False) -> AsyncIterator[str]:
        """Yield the build's log in pieces; with `follow`, until it is finished."""
        path = f"{self._path}/log"
        if not follow:
            async for text in read_text(self._http, path):
                yield text
            return
        async for message in _follow(self._http, path):
            yield log_text_of(message)
