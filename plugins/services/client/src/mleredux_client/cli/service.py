"""The server given by `--server`, for commands: JSON in and out, with its errors converted to mleredux's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError
from mleredux.models import Artifact

from mleredux_client import calls
from mleredux_client._sync.artifacts import ArtifactFile
from mleredux_client._sync.grades import Grades
from mleredux_client._sync.http import Http
from mleredux_client._sync.pages import Pager
from mleredux_client._sync.streams import follow, read_bytes
from mleredux_client.answers import parse
from mleredux_client.calls import Call
from mleredux_client.cli.servers import TOKEN_VARIABLE, clean_url, token_of
from mleredux_client.errors import NotFound
from mleredux_client.events import Message
from mleredux_client.files import target_of
from mleredux_client.models.run import FINAL
from mleredux_client.pairs import each
from mleredux_client.retries import RetryPolicy
from mleredux_client.settings import DEFAULT_TIMEOUT, Settings

_LOOKED_AT = 2000
"""Number of newest runs that are searched for a part of an id."""
_SHORT = RetryPolicy(retries=3)
"""Retries for three or four seconds at most, since users are waiting."""
_LONG = RetryPolicy(retries=60)
"""Retries for a few minutes."""
_AT_ONCE = 4


class Service(Grades):
    """One server and one token.

    Args:
        url: The URL, from `clean_url`.
        token: The token, which is never displayed.
    """

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self._settings = Settings(url, token)
        self.http = self._http = self._open(_SHORT)
        self.project = None

    @cached_property
    def _streams(self) -> Http:
        """Return the connection pool for live streams, which waits while a server restarts."""
        return self._open(_LONG)

    def _open(self, policy: RetryPolicy) -> Http:
        from mleredux import __version__

        agent = f"mleredux/{__version__}"
        return Http(self._settings, timeout=DEFAULT_TIMEOUT, policy=policy, user_agent=agent)

    def close(self) -> None:
        """Close all connections."""
        self.http.close()
        if "_streams" in self.__dict__:
            self._streams.close()

    def json(self, call: Call) -> Any:
        """Send a request and return the JSON of the response."""
        return self.http.json(call)

    def get(self, path: str, params: Mapping[str, Any] | None = None) -> Any:
        """Read a resource."""
        return self.http.json(calls.get(path, params))

    def act(self, path: str) -> Any:
        """Send an idempotent request."""
        return self.http.json(calls.act(path))

    def delete(self, path: str) -> None:
        """Delete a resource."""
        self.http.send(calls.delete(path))

    def pages(self, path: str, params: Mapping[str, Any], most: int = 500) -> Iterator[dict[str, Any]]:
        """Yield the items of a list, fetched while it is read.

        Args:
            most: Maximum number of items of one page.
        """
        filters = {name: value for name, value in params.items() if value not in (None, [], ())}
        return iter(Pager(self.http, path, dict, filters, page_size=min(most, 500)))

    def events(self, path: str) -> Iterator[Message]:
        """Yield the messages of a live stream until its end, resumed where it breaks."""
        return follow(self._streams, path)

    def content(self, path: str) -> Iterator[bytes]:
        """Yield the current content of a text resource in chunks of bytes; broken connections are resumed."""
        return read_bytes(self.http, path)

    def download(self, run_id: str, listed: list[dict[str, Any]], folder: Path) -> None:
        """Download artifacts into a folder, each checked against its hash; a repeated call only downloads missing ones.

        Raises:
            UnsafePath: A name would point outside the folder; nothing was downloaded.
        """
        infos = [parse(Artifact, item) for item in listed]
        folder.mkdir(parents=True, exist_ok=True)
        for info in infos:
            target_of(folder, info.path)
        each(lambda info: ArtifactFile(self.http, run_id, info.path, info).download(folder), infos, _AT_ONCE)

    def cancel(self, runs: Iterable[dict[str, Any]], experiment: str | None) -> None:
        """Request cancellation of an experiment, or of those runs that have not ended."""
        if experiment is not None:
            self.act(f"/v1/experiments/{calls.segment(experiment)}/cancel")
            return
        for run in runs:
            if run["status"] not in FINAL:
                self.act(f"/v1/runs/{run['id']}/cancel")

    def run(self, name: str) -> dict[str, Any]:
        """Return a run by its id or an unambiguous part of it, or the caller's newest run as `last`.

        Raises:
            NotFound: There is no such run, or there are several.
        """
        if name == "last":
            me = self.get("/v1/me")["user"]["name"]
            # An administrator sees all users' runs.
            newest = next((run for run in self.pages("/v1/runs", {}, 50) if run["user"] == me), None)
            if newest is None:
                raise NotFound(f"You have no runs on {self.url}.", hint="Start one with `mleredux run`.")
            return newest
        if "/" in name:  # paths refer to this machine
            raise NotFound(f"There is no run {name!r} on {self.url}.", hint="See `mleredux runs`.")
        try:
            record: dict[str, Any] = self.get(f"/v1/runs/{calls.segment(name)}")
            return record
        except NotFound as error:
            near = self._similar_runs(name)
            if len(near) == 1:
                return near[0]
            if near:
                hint = f"Use a longer part of the id, like {near[0]['id']}."
                raise NotFound(f"{len(near)} runs match {name!r}.", hint=hint) from None
            raise NotFound(error.detail, hint="See `mleredux runs`.") from None

    def _similar_runs(self, part: str) -> list[dict[str, Any]]:
        """Return those of the newest runs whose id contains this text."""
        near = []
        for number, run in enumerate(self.pages("/v1/runs", {}), start=1):
            if part in run["id"]:
                near.append(run)
            if number == _LOOKED_AT:
                break
        return near


def open_service(named: str) -> Service:
    """Return the server at a URL, with its stored token.

    Raises:
        MlereduxError: No token is stored for it.
    """
    url = clean_url(named)
    token = token_of(url)
    if token is None:
        hint = f"Log in with `mleredux login {url}`, or set {TOKEN_VARIABLE}."
        raise MlereduxError(f"There is no token for {url}.", hint=hint)
    return Service(url, token)
