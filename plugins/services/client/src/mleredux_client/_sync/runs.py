# Generated from mleredux_client/_async by generate_sync.py. Change that, not this.
"""A run on a service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from mleredux_client import calls
from mleredux_client._sync.artifacts import Artifacts
from mleredux_client._sync.pages import Pager
from mleredux_client._sync.resources import Resource
from mleredux_client._sync.streams import follow, read_text
from mleredux_client.answers import event_of, items_of, log_text_of, parse
from mleredux_client.errors import NotFound, NotYet
from mleredux_client.facts import RunFacts
from mleredux_client.frames import Listing
from mleredux_client.models import Event, LogFile, Report, RunRecord, Sample, Trajectory, VersionScore
from mleredux_client.pairs import sleep


class Run(RunFacts, Resource[RunRecord]):
    """One attempt of an agent at a task.

    What `status`, `score`, `message` and the like say is what the service said last; `refresh` asks again.
    """

    def events(self, after: int = -1, *, follow: bool = True) -> Iterator[Event]:
        """What happened, in order, each event once.

        Args:
            after: Only events with greater numbers.
            follow: Whether to go on until the run is final (and know then how it stands), whatever breaks in between;
                else what there is by now.
        """
        if follow:
            for message in _follow(self._http, f"{self._path}/events", after if after >= 0 else None):
                yield event_of(message)
            self.refresh()
            return
        while True:
            page = self._http.json(calls.get(f"{self._path}/events", {"after": after, "limit": 500}))
            for item in items_of(page, Event):
                after = item.seq
                yield item
            if not page.get("next"):
                return

    def logs(self, name: str = "agent.log", *, follow: bool = False) -> Iterator[str]:
        """A log's text, in pieces: `print(text, end="")` each.

        Args:
            name: See `log_files`.
            follow: Whether to wait for its beginning and go on until the run is final; else what there is by now.

        Raises:
            NotFound: There is no such log.
        """
        path = f"{self._path}/logs/{calls.segment(name)}"
        if not follow:
            yield from read_text(self._http, path)
            return
        while True:
            try:
                for message in _follow(self._http, path):
                    yield log_text_of(message)
                return
            except NotFound:
                self.refresh()
                if self.state.final:
                    raise
            sleep(1.0)

    def log_files(self) -> Listing[LogFile]:
        """Which logs there are."""
        return Pager(self._http, f"{self._path}/logs", partial(parse, LogFile)).list()

    @property
    def report(self) -> Report | None:
        """The grade, once there is one."""
        if self.record.report is not None:
            return self.record.report
        document = self._unless_not_yet("report")
        return parse(Report, document) if document is not None else None

    @property
    def rollout(self) -> Trajectory | None:
        """The standard step-by-step trace, once there is one."""
        document = self._unless_not_yet("rollout")
        return parse(Trajectory, document) if document is not None else None

    @property
    def scores(self) -> Listing[VersionScore]:
        """The score over time: every version of the submission, oldest first; empty until they are graded."""
        return Listing(items_of(self._unless_not_yet("scores"), VersionScore))

    def resources(self) -> Listing[Sample]:
        """What the agent used over its time; empty until that is known."""
        return Listing(items_of(self._unless_not_yet("resources"), Sample))

    @property
    def artifacts(self) -> Artifacts:
        """Every file that is kept."""
        return Artifacts(self._http, self.id)

    def cancel(self) -> Run:
        """Stop it; its output so far is still graded and kept. Nothing happens to one that is final."""
        return self._said(self._http.json(calls.act(f"{self._path}/cancel")))

    def retry(self) -> Run:
        """Let it go on where it ended by no fault of the agent; else a new run with the same request.

        Returns:
            The run that works now: this one, or another with `record.retry_of`.

        Raises:
            Conflict: It is not final.
        """
        made = self._of(self._http, self._http.json(calls.create(f"{self._path}/retry", {})))
        if made.id != self.id:
            return made
        self.record = made.record
        return self

    def update(
        self,
        *,
        labels: Mapping[str, str | None] | None = None,
        notes: str | None = None,
        priority: int | None = None,
        pinned: bool | None = None,
    ) -> Run:
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
        return self._said(self._http.json(calls.Call("PATCH", self._path, json=body)))

    def delete(self) -> None:
        """Remove it with everything that is kept of it.

        Raises:
            Conflict: It is not final; cancel it before.
        """
        self._http.send(calls.delete(self._path))

    def _unless_not_yet(self, name: str) -> Any:
        try:
            return self._http.json(calls.get(f"{self._path}/{name}"))
        except NotYet:
            return None


_follow = follow
"""By another name: `follow` is an argument too."""
