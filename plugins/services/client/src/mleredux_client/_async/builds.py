"""Upload local agents to a server, and build agents' environments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mleredux_client import calls
from mleredux_client._async.http import AsyncHttp
from mleredux_client._async.pages import AsyncPager
from mleredux_client._async.uploads import uploaded
from mleredux_client._async.work import AsyncBuild


class AsyncBuilds:
    """The part of a client that uploads agents and builds their environments."""

    project: str | None
    _http: AsyncHttp

    async def upload(self, agent: str | Path, *, project: str | None = None) -> str:
        """Upload an agent's folder or script, like `run`.

        Args:
            agent: Its path.
            project: Id or name of the project that it belongs to.

        Returns:
            The agent's reference, with its name and hash; anything that is not a path is returned unchanged.

        Raises:
            UsageError: The folder does not exist.
            TooLarge: The folder is too large for the server.
        """
        return await uploaded(self._http, agent, project or self.project)

    async def build(
        self,
        agent: str | Path,
        *,
        options: Mapping[str, Any] | None = None,
        sandbox: str | None = None,
        secrets: Iterable[str] = (),
        project: str | None = None,
        wait: bool = False,
    ) -> AsyncBuild:
        """Build an agent's environment ahead of its runs.

        Args:
            agent: `repo:https://host/team/agent.git@REF`, or the id of an agent.
            options: Options of the agent that differ from its defaults.
            sandbox: Id of the sandbox that it will run in.
            secrets: Names of your own or the project's secrets; `GIT_TOKEN` is used to fetch a private repository.
            project: Id or name of the project that it belongs to.
            wait: Whether to return only when it is ready.
        """
        body = {
            "agent": await self.upload(agent, project=project),
            "options": dict(options) if options else None,
            "sandbox": sandbox,
            "secrets": list(secrets),
            "project": project or self.project,
        }
        created = AsyncBuild._of(self._http, await self._http.json(calls.create("/v1/builds", body)))
        return await created.wait() if wait else created

    async def get_build(self, id: str) -> AsyncBuild:
        """Return a build, by id."""
        return AsyncBuild._of(self._http, await self._http.json(calls.get(f"/v1/builds/{calls.segment(id)}")))

    def builds(self) -> AsyncPager[AsyncBuild]:
        """Return the builds that the user may see, newest first."""
        return AsyncPager(self._http, "/v1/builds", partial(AsyncBuild._of, self._http))
