"""Grading and validation of files, without an agent."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal, overload

from mleredux.models import Verdict

from mleredux_client import calls
from mleredux_client._async.http import AsyncHttp
from mleredux_client._async.pages import AsyncPager
from mleredux_client._async.work import AsyncSubmission
from mleredux_client.answers import parse
from mleredux_client.models.run import Report

_WAIT_SECONDS = 20.0
"""Seconds for which the server may wait for the grade before it responds; after that, the client polls."""


class AsyncGrades:
    """The part of a client that grades and validates files."""

    project: str | None
    """The project of all requests; None: the default project of the token."""
    _http: AsyncHttp

    @overload
    async def grade(
        self, submission: Path | str, task: str, *, wait: Literal[True] = True, project: str | None = None
    ) -> Report: ...

    @overload
    async def grade(
        self, submission: Path | str, task: str, *, wait: Literal[False], project: str | None = None
    ) -> AsyncSubmission: ...

    async def grade(
        self, submission: Path | str, task: str, *, wait: bool = True, project: str | None = None
    ) -> Report | AsyncSubmission:
        """Grade a file of predictions without an agent.

        Args:
            submission: Path of the file.
            task: Id of the task.
            wait: Whether to wait for the report and return it; otherwise, return the submission.
            project: Id or name of the project that it belongs to.

        Raises:
            NotFound: There is no such task.
            TooLarge: The file is too large for the server.
            WorkFailed: The server or the task is at fault, not the submission.
        """
        form = {"task": task, "project": project or self.project}
        call = calls.upload("/v1/submissions", submission, form, prefer_wait=_WAIT_SECONDS if wait else 0)
        created = AsyncSubmission._of(self._http, await self._http.json(call))
        if not wait:
            return created
        return (created if created.finished else await created.wait()).result()

    async def get_submission(self, id: str) -> AsyncSubmission:
        """Return predictions submitted earlier, by id."""
        path = f"/v1/submissions/{calls.segment(id)}"
        return AsyncSubmission._of(self._http, await self._http.json(calls.get(path)))

    def submissions(self, *, task: str | None = None) -> AsyncPager[AsyncSubmission]:
        """Return predictions submitted earlier, newest first."""
        filters = calls.known({"task": task})
        return AsyncPager(self._http, "/v1/submissions", partial(AsyncSubmission._of, self._http), filters)

    async def validate(self, submission: Path | str, task: str) -> Verdict:
        """Return whether a file of predictions is well-formed; never its score."""
        call = calls.upload("/v1/validations", submission, {"task": task}, creates=False)
        return parse(Verdict, await self._http.json(call))
