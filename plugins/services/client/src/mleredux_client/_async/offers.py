"""The catalogue of a server: tasks, techniques, agents, graders and sandboxes."""

from __future__ import annotations

from functools import partial

from mleredux_client import calls
from mleredux_client._async.http import AsyncHttp
from mleredux_client._async.pages import AsyncPager
from mleredux_client.answers import parse
from mleredux_client.models.catalogue import Agent, Grader, Sandbox, Task, Technique


class AsyncOffers:
    """The part of a client that lists the server's catalogue."""

    _http: AsyncHttp

    def tasks(
        self,
        *,
        set: str | None = None,
        category: str | None = None,
        technique: str | None = None,
        q: str | None = None,
    ) -> AsyncPager[Task]:
        """Return tasks, optionally only those of a set, a category or a technique, or those that contain a word."""
        filters = calls.known({"set": set, "category": category, "technique": technique, "q": q})
        return AsyncPager(self._http, "/v1/tasks", partial(parse, Task), filters)

    async def task(self, id: str, *, obfuscated: bool = False) -> Task:
        """Return a task with its description, by id."""
        params = {"obfuscated": "true"} if obfuscated else {}
        return parse(Task, await self._http.json(calls.get(f"/v1/tasks/{calls.segment(id)}", params)))

    def techniques(self) -> AsyncPager[Technique]:
        """Return techniques; `tasks(technique=…)` returns the tasks that a technique derives."""
        return AsyncPager(self._http, "/v1/techniques", partial(parse, Technique))

    def agents(self) -> AsyncPager[Agent]:
        """Return the agents of the server."""
        return AsyncPager(self._http, "/v1/agents", partial(parse, Agent))

    async def agent(self, id: str) -> Agent:
        """Return an agent with its options and limits, by id."""
        return parse(Agent, await self._http.json(calls.get(f"/v1/agents/{calls.segment(id)}")))

    def graders(self) -> AsyncPager[Grader]:
        """Return the metrics of the server."""
        return AsyncPager(self._http, "/v1/graders", partial(parse, Grader))

    def sandboxes(self) -> AsyncPager[Sandbox]:
        """Return the sandboxes of the server."""
        return AsyncPager(self._http, "/v1/sandboxes", partial(parse, Sandbox))
