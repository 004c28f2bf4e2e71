"""A run on a service."""

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
    from mleredux.models.rollout import Trajectory


class AsyncRun(RunFacts, AsyncResource[RunRecord]):
    """One attempt of an agent at a task.

    What `status`, `score`, `message` and the like say is what the service said last; `refresh` asks again.
    """

    async def events(self, after: int = -1, *, follow: bool = True) -> AsyncIterator[Event]:
        """Yield the events in order, each once.

        Args:
            after: Only events with greater numbers.
            follow: Whether to go on until the run is final (and know then how it stands), whatever breaks in between;
                else what there is by now.
        """
        if follow:
            async for message in _follow(self._http, f"{self._path}/events", after if after >= 0 else None):
                yield event_of(message)
            await self.refresh()
            return
        while True:
            page = await self._http.json(calls.get(f"{self._path}/events", {"after": after, "limit": 500}))
            for item in items_of(page, Event):
                after = item.seq
                yield item
            if not page.get("next"):
                return

    async def logs(self, name: str = "agent.log", *, follow: bool = False) -> AsyncIterator[str]:
        """Yield a log's text in pieces; print each with `print(text, end="")`.

        Args:
            name: See `log_files`.
            follow: Whether to wait for its beginning and go on until the run is final; else what there is by now.

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
        """The grade, once there is one."""
        if self.record.report is not None:
            return self.record.report
        document = await self._unless_not_yet("report")
        return parse(Report, document) if document is not None else None

    @property
    async def rollout(self) -> Trajectory | None:
        """The standard step-by-step trace, once there is one."""
        from mleredux.models.rollout import Trajectory

        document = await self._unless_not_yet("rollout")
        return parse(Trajectory, document) if document is not None else None

    @property
    async def scores(self) -> Listing[VersionScore]:
        """The score over time: every version of the submission, oldest first; empty until they are graded."""
        return Listing(items_of(await self._unless_not_yet("scores"), VersionScore))

    async def resources(self) -> Listing[Sample]:
        """Return the resource use of the agent over time; empty until that is known."""
        return Listing(items_of(await self._unless_not_yet("resources"), Sample))

    @property
    def artifacts(self) -> AsyncArtifacts:
        """Every file that is kept."""
        return AsyncArtifacts(self._http, self.id)

    async def cancel(self) -> AsyncRun:
        """Stop it; its output so far is still graded and kept. Nothing happens to one that is final."""
        return self._said(await self._http.json(calls.act(f"{self._path}/cancel")))

    async def retry(self) -> AsyncRun:
        """Let it go on where it ended by no fault of the agent; else a new run with the same request.

        Returns:
            The run that works now: this one, or another with `record.retry_of`.

        Raises:
            Conflict: It is not final.
        """
        made = self._of(self._http, await self._http.json(calls.create(f"{self._path}/retry", {})))
        if made.id != self.id:
            return made
        self.record = made.record
        return self

    async def update(
        self,
        *,
        labels: Mapping[str, str | None] | None = None,
        notes: str | None = None,
        priority: int | None = None,
        pinned: bool | None = None,
    ) -> AsyncRun:
        """Change it; what is None stays.

        Args:
            labels: Only these change; a value of None removes the label.
            notes: Text for people; empty removes it.
            priority: From -100 to 100, while it is queued.
            pinned: Whether it is kept whatever the service's retention rules say.

        Raises:
            Conflict: It is not queued, and `priority` is given.
        """
        body = calls.known({"labels": labels, "notes": notes, "priority": priority, "pinned": pinned})
        return self._said(await self._http.json(calls.Call("PATCH", self._path, json=body)))

    async def delete(self) -> None:
        """Remove it with everything that is kept of it.

        Raises:
            Conflict: It is not final; cancel it before.
        """
        await self._http.send(calls.delete(self._path))

    async def _unless_not_yet(self, name: str) -> Any:
        try:
            return await self._http.json(calls.get(f"{self._path}/{name}"))
        except NotYet:
            return None


_follow = follow
"""By another name: `follow` is an argument too."""
