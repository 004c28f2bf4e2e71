"""Administration: tokens, users, projects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from typing import Any

from mleredux_client import calls
from mleredux_client._async.http import AsyncHttp
from mleredux_client._async.pages import AsyncPager
from mleredux_client.answers import parse
from mleredux_client.frames import Listing
from mleredux_client.models import Project, Quota, Token, TokenInfo, User


class AsyncTokens:
    """One's own tokens; an administrator's: everybody's."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http
        self._all = AsyncPager(http, "/v1/tokens", partial(parse, TokenInfo))

    def __aiter__(self) -> AsyncIterator[TokenInfo]:
        return self._all.__aiter__()

    async def list(self) -> Listing[TokenInfo]:
        """All tokens, without their secrets."""
        return await self._all.list()

    async def create(
        self,
        name: str,
        scopes: Iterable[str] = ("read", "run", "grade"),
        *,
        project: str | None = None,
        expires_in: float | None = None,
        user: str | None = None,
    ) -> Token:
        """Make a token.

        Args:
            name: What it is for.
            scopes: Of `read`, `run`, `grade`, `tokens`, `admin`.
            project: The only one it may use; all of the user's where None.
            expires_in: Seconds that it lasts; for ever where None.
            user: Whose, by id; only an administrator may name another's.

        Returns:
            The token; `token.token.get_secret_value()` is what to hand on, and is never said again.
        """
        body = {"name": name, "scopes": list(scopes), "project": project, "expires_in": expires_in, "user": user}
        return parse(Token, await self._http.json(calls.create("/v1/tokens", body)))

    async def delete(self, token: str | TokenInfo) -> None:
        """Make a token worthless, by its id."""
        await self._http.send(calls.delete(f"/v1/tokens/{calls.segment(_id(token))}"))


class AsyncUsers:
    """Everybody who may use the service; for administrators."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http
        self._all = AsyncPager(http, "/v1/users", partial(parse, User))

    def __aiter__(self) -> AsyncIterator[User]:
        return self._all.__aiter__()

    async def list(self) -> Listing[User]:
        """All users."""
        return await self._all.list()

    async def create(self, name: str, *, admin: bool = False) -> User:
        """Add a user, who gets a project of their own."""
        return parse(User, await self._http.json(calls.create("/v1/users", {"name": name, "admin": admin})))

    async def get(self, user: str) -> User:
        """A user, by id."""
        return parse(User, await self._http.json(calls.get(f"/v1/users/{calls.segment(user)}")))

    async def delete(self, user: str | User) -> None:
        """Remove a user, by id."""
        await self._http.send(calls.delete(f"/v1/users/{calls.segment(_id(user))}"))


class AsyncProjects:
    """One's projects; an administrator's: all."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http
        self._all = AsyncPager(http, "/v1/projects", partial(parse, Project))

    def __aiter__(self) -> AsyncIterator[Project]:
        return self._all.__aiter__()

    async def list(self) -> Listing[Project]:
        """All projects that one may see."""
        return await self._all.list()

    async def create(self, name: str, *, quota: Quota | Mapping[str, Any] | None = None) -> Project:
        """Make a project; only an administrator may name a quota."""
        return parse(
            Project, await self._http.json(calls.create("/v1/projects", {"name": name, "quota": _quota(quota)}))
        )

    async def get(self, project: str) -> Project:
        """A project with its quota and what it uses now, by id."""
        return parse(Project, await self._http.json(calls.get(f"/v1/projects/{calls.segment(project)}")))

    async def update(
        self,
        project: str | Project,
        *,
        name: str | None = None,
        quota: Quota | Mapping[str, Any] | None = None,
    ) -> Project:
        """Change a project; only an administrator may change its quota."""
        path = f"/v1/projects/{calls.segment(_id(project))}"
        body = calls.known({"name": name, "quota": _quota(quota)})
        return parse(Project, await self._http.json(calls.Call("PATCH", path, json=body, repeatable=False)))

    async def add_member(self, project: str | Project, user: str | User, role: str = "member") -> None:
        """Let a user in, or give them another role: `member` or `owner`."""
        await self._http.send(calls.Call("PUT", _member(project, user), json={"role": role}))

    async def remove_member(self, project: str | Project, user: str | User) -> None:
        """Let a user in no more."""
        await self._http.send(calls.delete(_member(project, user)))


def _id(thing: str | TokenInfo | User | Project) -> str:
    return thing if isinstance(thing, str) else thing.id


def _member(project: str | Project, user: str | User) -> str:
    return f"/v1/projects/{calls.segment(_id(project))}/members/{calls.segment(_id(user))}"


def _quota(quota: Quota | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Only what was said: in a change, None lifts a limit."""
    if quota is None:
        return None
    return quota.model_dump(mode="json", exclude_unset=True) if isinstance(quota, Quota) else dict(quota)
