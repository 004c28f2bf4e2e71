# Generated from mleredux_client/_async by generate_sync.py. Change that, not this.
"""Agents of this machine on a service, and their environments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mleredux_client import calls
from mleredux_client._sync.http import Http
from mleredux_client._sync.pages import Pager
from mleredux_client._sync.uploads import uploaded
from mleredux_client._sync.work import Build


class Builds:
    """The part of a client that uploads agents and has their environments made."""

    project: str | None
    _http: Http

    def upload(self, agent: str | Path, *, project: str | None = None) -> str:
        """Upload an agent's folder or script, as `run` does.

        Args:
            agent: Its path.
            project: Id or name of the project that it belongs to.

        Returns:
            Its reference, with its name and hash; what is not a path is returned as it is.

        Raises:
            UsageError: There is no such folder.
            TooLarge: It is too large for the service.
        """
        return uploaded(self._http, agent, project or self.project)

    def build(
        self,
        agent: str | Path,
        *,
        options: Mapping[str, Any] | None = None,
        sandbox: str | None = None,
        secrets: Iterable[str] = (),
        project: str | None = None,
        wait: bool = False,
    ) -> Build:
        """Make an agent's environment ahead of its runs.

        Args:
            agent: `repo:https://host/team/agent.git@REF`, or the id of an agent.
            options: Options of the agent to change.
            sandbox: Where it will run.
            secrets: Names of secrets of yours or the project's: `GIT_TOKEN` fetches a private repository.
            project: Id or name of the project that it belongs to.
            wait: Whether to return only once it can be used.
        """
        body = {
            "agent": self.upload(agent, project=project),
            "options": dict(options) if options else None,
            "sandbox": sandbox,
            "secrets": list(secrets),
            "project": project or self.project,
        }
        made = Build._of(self._http, self._http.json(calls.create("/v1/builds", body)))
        return made.wait() if wait else made

    def get_build(self, id: str) -> Build:
        """A build, by id."""
        return Build._of(self._http, self._http.json(calls.get(f"/v1/builds/{calls.segment(id)}")))

    def builds(self) -> Pager[Build]:
        """Builds that one may see, newest first."""
        return Pager(self._http, "/v1/builds", partial(Build._of, self._http))
