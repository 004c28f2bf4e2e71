"""A run on a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from mleredux.models import Event, Sample, VersionScore

from mleredux_client import calls
from mleredux_client._async.artifacts import AsyncArtifacts
from mleredux_client._async.pages import AsyncPager
from mleredux_client._async.resources import AsyncResource
from mleredux_client._async.streams import follow, read_text
from mleredux_client.answers import event_of, items_of, log_text_of, parse
from mleredux_client.errors import NotFound, NotYet
from mleredux_client.facts import RunFacts
from mleredux_client.frames import Listing
from mleredux_client.models.run import LogFile, Report, RunRecord
from mleredux_client.pairs import async_sleep

if TYPE_CHECKING:
    from mleredux_rollout.models import Trajectory


class AsyncRun(RunFacts, AsyncResource[RunRecord]):
    """A run of an agent on a task.

    `status`, `score`, `message` and the other attributes are as of the last response; `refresh` updates them.
    """

    async def events(self, after: int = -1, *, follow: bool = True) -> AsyncIterator[Event]:
        """Yield the events in order, each once.

        Args:
            after: Only events with greater numbers.
            follow: Whether to continue until the run is final and then update it, despite interruptions; otherwise,
                only existing events are returned.
        """
        if follow:
            async for message in _follow(self._http, f"{self._path}/events", after if after >= 0 else None):
                yield event_of(message)
            await self.refresh()
            return
        path, newer = f"{self._path}/events", {"after": after}
        async for event in AsyncPager(self._http, path, partial(parse, Event), newer, page_size=500):
            yield event

    async def logs(self, name: str = "agent.log", *, follow: bool = False) -> AsyncIterator[str]:
        """Yield a log's text in pieces; print each with `print(text, end="")`.

        Args:
            name: See `log_files`.
            follow: Whether to wait for its beginning and continue until the run is final; otherwise, only existing text
                is returned.

        Raises:
            NotFound: There is no such log.
        """
        path = f"{self._path}/logs/{calls.segment(name)}"
        if not follow:
            async for text in read_text(self._http, path):
                yield text
            return
        while True:
            try:
                async for message in _follow(self._http, path):
                    yield log_text_of(message)
                return
            except NotFound:
                await self.refresh()
                if self.state.final:
                    raise
            await async_sleep(1.0)

    async def log_files(self) -> Listing[LogFile]:
        """Return the names of the logs."""
        return await AsyncPager(self._http, f"{self._path}/logs", partial(parse, LogFile)).list()

    @property
    async def report(self) -> Report | None:
        """Return the grade report, once there is one."""
        if self.record.report is not None:
            return self.record.report
        document = await self._unless_not_yet("report")
        return parse(Report, document) if document is not None else None

    @property
    async def rollout(self) -> Trajectory | None:
        """Return the standard step-by-step trace, once there is one."""
        from mleredux_rollout.models import Trajectory

        document = await self._unless_not_yet("rollout")
        return parse(Trajectory, document) if document is not None else None

    @property
    async def scores(self) -> Listing[VersionScore]:
        """Return the score over time: every version of the submission, oldest first; empty until they are graded."""
        return Listing(items_of(await self._unless_not_yet("scores"), VersionScore))

    async def resources(self) -> Listing[Sample]:
        """Return the resource usage of the agent over time; empty until it is known."""
        return Listing(items_of(await self._unless_not_yet("resources"), Sample))

    @property
    def artifacts(self) -> AsyncArtifacts:
        """The stored files of the run."""
        return AsyncArtifacts(self._http, self.id)

    async def cancel(self) -> AsyncRun:
        """Cancel it; its output until then is still graded and kept. A run that is final does not change."""
        return self._update(await self._http.json(calls.act(f"{self._path}/cancel")))

    async def retry(self) -> AsyncRun:
        """Resume it if it ended for a reason other than the agent; otherwise, create a new run with the same request.

        Returns:
            The active run, which is this one or a new one with `record.retry_of`.

        Raises:
            Conflict: The run is not final.
        """
        retried = self._of(self._http, await self._http.json(calls.create(f"{self._path}/retry", {})))
        if retried.id != self.id:
            return retried
        self.record = retried.record
        return self

    async def update(
        self,
        *,
        labels: Mapping[str, str | None] | None = None,
        notes: str | None = None,
        priority: int | None = None,
        pinned: bool | None = None,
    ) -> AsyncRun:
        """Change it; arguments that are None change nothing.

        Args:
            labels: The labels to change; a value of None removes the label.
            notes: Free text; empty text removes the existing notes.
            priority: From -100 to 100, while it is queued.
            pinned: Whether it is kept regardless of the server's retention rules.

        Raises:
            Conflict: `priority` is given, and the run is not queued.
        """
        body = calls.known({"labels": labels, "notes": notes, "priority": priority, "pinned": pinned})
        return self._update(await self._http.json(calls.Call("PATCH", self._path, json=body)))

    async def delete(self) -> None:
        """Delete it with all of its files.

        Raises:
            Conflict: The run is not final; cancel it first.
        """
        await self._http.send(calls.delete(self._path))

    async def _unless_not_yet(self, name: str) -> Any:
        try:
            return await self._http.json(calls.get(f"{self._path}/{name}"))
        except NotYet:
            return None


_follow = follow
"""An alias, since `follow` is also an argument."""
