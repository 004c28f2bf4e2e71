"""Administration: tokens, users, projects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from mleredux_client import calls
from mleredux_client._async.http import AsyncHttp
from mleredux_client._async.pages import AsyncPager
from mleredux_client.answers import parse
from mleredux_client.durations import Duration, seconds
from mleredux_client.frames import Listing
from mleredux_client.models.account import (
    Delivery,
    Project,
    Quota,
    SecretInfo,
    Token,
    TokenInfo,
    User,
    Webhook,
    WebhookInfo,
)

M = TypeVar("M", TokenInfo, User, Project, WebhookInfo)


class _All(Generic[M]):
    """All things of a kind that one may see."""

    _path: ClassVar[str]
    _model: ClassVar[type[Any]]

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http
        self._all: AsyncPager[M] = AsyncPager(http, self._path, partial(parse, self._model))

    def __aiter__(self) -> AsyncIterator[M]:
        return self._all.__aiter__()

    async def list(self) -> Listing[M]:
        """All that one may see; tokens without their secrets."""
        return await self._all.list()

    def _path_of(self, thing: str | M) -> str:
        return f"{self._path}/{calls.segment(_id(thing))}"


class AsyncTokens(_All[TokenInfo]):
    """One's own tokens; an administrator's: everybody's."""

    _path, _model = "/v1/tokens", TokenInfo

    async def create(
        self,
        name: str,
        scopes: Iterable[str] = ("read", "run", "grade"),
        *,
        project: str | None = None,
        expires_in: Duration | None = None,
        user: str | None = None,
    ) -> Token:
        """Make a token.

        Args:
            name: What it is for.
            scopes: Of `read`, `run`, `grade`, `tokens`, `admin`.
            project: The only one it may use; all of the user's where None.
            expires_in: How long it lasts: seconds, "30d", or a `timedelta`; for ever where None.
            user: Whose, by id; only an administrator may name another's.

        Returns:
            The token; `token.token.get_secret_value()` is what to hand on, and is never said again.
        """
        lasts = seconds(expires_in) if expires_in is not None else None
        body = {"name": name, "scopes": list(scopes), "project": project, "expires_in": lasts, "user": user}
        return parse(Token, await self._http.json(calls.create("/v1/tokens", body)))

    async def delete(self, token: str | TokenInfo) -> None:
        """Make a token worthless, by its id."""
        await self._http.send(calls.delete(self._path_of(token)))


class AsyncSecrets:
    """Secrets: their values can be set, and never read."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def list(self, *, project: str | None = None) -> Listing[SecretInfo]:
        """One's own secrets, or those of a project."""
        params = calls.known({"project": project})
        return await AsyncPager(self._http, "/v1/secrets", partial(parse, SecretInfo), params).list()

    async def set(self, name: str, value: str, *, project: str | None = None) -> SecretInfo:
        """Create or replace a secret.

        Args:
            name: As the agent's variable: `HF_TOKEN`. `GIT_TOKEN` fetches repositories of agents instead, and keys of
                language models are used by the gateway.
            value: It is encrypted on the service, and masked in everything that a run leaves.
            project: Of which it is, so that all members' runs can use it; only owners may. None: your own.
        """
        body = calls.known({"value": value, "project": project})
        call = calls.Call("PUT", f"/v1/secrets/{calls.segment(name)}", json=body)
        return parse(SecretInfo, await self._http.json(call))

    async def delete(self, name: str, *, project: str | None = None) -> None:
        """Delete a secret."""
        call = calls.Call("DELETE", f"/v1/secrets/{calls.segment(name)}", calls.known({"project": project}))
        await self._http.send(call)


class AsyncWebhooks(_All[WebhookInfo]):
    """Addresses that are told of events of one's projects; only their owners change them."""

    _path, _model = "/v1/webhooks", WebhookInfo

    async def create(self, url: str, *, events: Iterable[str] = (), project: str | None = None) -> Webhook:
        """Create a webhook.

        Args:
            url: Where messages are sent: public, with https.
            events: Of `run.ended` and `experiment.ended`; all by default.
            project: Id or name; your own by default.
        """
        body = calls.known({"url": url, "events": list(events) or None, "project": project})
        return parse(Webhook, await self._http.json(calls.create(self._path, body)))

    async def test(self, webhook: str | WebhookInfo) -> Delivery:
        """Have a message of the event `test` sent."""
        return parse(Delivery, await self._http.json(calls.create(f"{self._path_of(webhook)}/test", {})))

    async def deliveries(self, webhook: str | WebhookInfo) -> Listing[Delivery]:
        """What became of its messages, newest first."""
        path = f"{self._path_of(webhook)}/deliveries"
        return await AsyncPager(self._http, path, partial(parse, Delivery)).list()

    async def delete(self, webhook: str | WebhookInfo) -> None:
        """Delete a webhook, with the messages that are not delivered yet."""
        await self._http.send(calls.delete(self._path_of(webhook)))


class AsyncUsers(_All[User]):
    """Everybody who may use the service; for administrators."""

    _path, _model = "/v1/users", User

    async def create(self, name: str, *, admin: bool = False, service: str | None = None) -> User:
        """Add a user, who gets a project of their own.

        Args:
            name: Of the user.
            admin: Whether they may do everything.
            service: Id or name of a project: the user is a service account, a program that works in it.
        """
        body = {"name": name, "admin": admin, "service": service is not None or None, "project": service}
        return parse(User, await self._http.json(calls.create("/v1/users", body)))

    async def get(self, user: str) -> User:
        """A user, by id."""
        return parse(User, await self._http.json(calls.get(self._path_of(user))))

    async def delete(self, user: str | User) -> None:
        """Remove a user, by id."""
        await self._http.send(calls.delete(self._path_of(user)))


class AsyncProjects(_All[Project]):
    """One's projects; an administrator's: all."""

    _path, _model = "/v1/projects", Project

    async def create(self, name: str, *, quota: Quota | Mapping[str, Any] | None = None) -> Project:
        """Make a project; only an administrator may name a quota."""
        return parse(
            Project, await self._http.json(calls.create("/v1/projects", {"name": name, "quota": _quota(quota)}))
        )

    async def get(self, project: str) -> Project:
        """A project with its quota and what it uses now, by id."""
        return parse(Project, await self._http.json(calls.get(self._path_of(project))))

    async def update(
        self,
        project: str | Project,
        *,
        name: str | None = None,
        quota: Quota | Mapping[str, Any] | None = None,
    ) -> Project:
        """Change a project; only an administrator may change its quota."""
        body = calls.known({"name": name, "quota": _quota(quota)})
        return parse(
            Project, await self._http.json(calls.Call("PATCH", self._path_of(project), json=body, repeatable=False))
        )

    async def add_member(self, project: str | Project, user: str | User, role: str = "member") -> None:
        """Let a user in, or give them another role: `member` or `owner`."""
        await self._http.send(calls.Call("PUT", self._member(project, user), json={"role": role}))

    async def remove_member(self, project: str | Project, user: str | User) -> None:
        """Let a user in no more."""
        await self._http.send(calls.delete(self._member(project, user)))

    def _member(self, project: str | Project, user: str | User) -> str:
        return f"{self._path_of(project)}/members/{calls.segment(_id(user))}"


def _id(thing: str | TokenInfo | User | Project | WebhookInfo) -> str:
    return thing if isinstance(thing, str) else thing.id


def _quota(quota: Quota | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Only what was said: in a change, None lifts a limit."""
    if quota is None:
        return None
    return quota.model_dump(mode="json", exclude_unset=True) if isinstance(quota, Quota) else dict(quota)
