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
    """Records of one kind that the caller may see."""

    _path: ClassVar[str]
    _model: ClassVar[type[Any]]

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http
        self._all: AsyncPager[M] = AsyncPager(http, self._path, partial(parse, self._model))

    def __aiter__(self) -> AsyncIterator[M]:
        return self._all.__aiter__()

    async def list(self) -> Listing[M]:
        """Return all records that the caller may see; tokens come without their secrets."""
        return await self._all.list()

    def _path_of(self, item: str | M) -> str:
        return f"{self._path}/{calls.segment(_id(item))}"


class AsyncTokens(_All[TokenInfo]):
    """The caller's tokens; for administrators, those of all users."""

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
        """Create a token.

        Args:
            name: The token's purpose.
            scopes: Any of `read`, `run`, `grade`, `tokens`, `admin`.
            project: The only project that it may use; None: all of the user's projects.
            expires_in: Its lifetime: seconds, text such as "30d", or a `timedelta`; None: it does not expire.
            user: Id of its owner; only administrators may name another user.

        Returns:
            The token; `token.token.get_secret_value()` returns its secret, which the server does not return again.
        """
        lasts = seconds(expires_in) if expires_in is not None else None
        body = {"name": name, "scopes": list(scopes), "project": project, "expires_in": lasts, "user": user}
        return parse(Token, await self._http.json(calls.create("/v1/tokens", body)))

    async def delete(self, token: str | TokenInfo) -> None:
        """Revoke a token by its id."""
        await self._http.send(calls.delete(self._path_of(token)))


class AsyncSecrets:
    """Secrets, whose values can be set but not read."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def list(self, *, project: str | None = None) -> Listing[SecretInfo]:
        """Return the caller's secrets, or those of a project."""
        params = calls.known({"project": project})
        return await AsyncPager(self._http, "/v1/secrets", partial(parse, SecretInfo), params).list()

    async def set(self, name: str, value: str, *, project: str | None = None) -> SecretInfo:
        """Create or replace a secret.

        Args:
            name: Name of the agent's environment variable, such as `HF_TOKEN`. However, `GIT_TOKEN` is only used to
                fetch agents' repositories, and API keys of language models are only used by the gateway.
            value: The value, which is encrypted on the server, and masked in all output of runs.
            project: Id or name of the project that owns the secret, so that runs of all members can use it; requires
                the role `owner`. None: the caller owns it.
        """
        body = calls.known({"value": value, "project": project})
        call = calls.Call("PUT", f"/v1/secrets/{calls.segment(name)}", json=body)
        return parse(SecretInfo, await self._http.json(call))

    async def delete(self, name: str, *, project: str | None = None) -> None:
        """Delete a secret."""
        call = calls.Call("DELETE", f"/v1/secrets/{calls.segment(name)}", calls.known({"project": project}))
        await self._http.send(call)


class AsyncWebhooks(_All[WebhookInfo]):
    """URLs that are notified of events in the caller's projects; only owners of a project may change them."""

    _path, _model = "/v1/webhooks", WebhookInfo

    async def create(self, url: str, *, events: Iterable[str] = (), project: str | None = None) -> Webhook:
        """Create a webhook.

        Args:
            url: Public https URL that messages are sent to.
            events: Any of `run.ended` and `experiment.ended`; all by default.
            project: Id or name of the project; the caller's own by default.
        """
        body = calls.known({"url": url, "events": list(events) or None, "project": project})
        return parse(Webhook, await self._http.json(calls.create(self._path, body)))

    async def test(self, webhook: str | WebhookInfo) -> Delivery:
        """Send a message for the event `test`."""
        return parse(Delivery, await self._http.json(calls.create(f"{self._path_of(webhook)}/test", {})))

    async def deliveries(self, webhook: str | WebhookInfo) -> Listing[Delivery]:
        """Return the webhook's messages with their delivery status, newest first."""
        path = f"{self._path_of(webhook)}/deliveries"
        return await AsyncPager(self._http, path, partial(parse, Delivery)).list()

    async def delete(self, webhook: str | WebhookInfo) -> None:
        """Delete a webhook with its undelivered messages."""
        await self._http.send(calls.delete(self._path_of(webhook)))


class AsyncUsers(_All[User]):
    """The users of the server; for administrators."""

    _path, _model = "/v1/users", User

    async def create(self, name: str, *, admin: bool = False, service: str | None = None) -> User:
        """Create a user with their own project.

        Args:
            name: Name of the user.
            admin: Whether the user is an administrator.
            service: Id or name of a project: the user is a service account, a program that works in it.
        """
        body = {"name": name, "admin": admin, "service": service is not None or None, "project": service}
        return parse(User, await self._http.json(calls.create("/v1/users", body)))

    async def get(self, user: str) -> User:
        """Return a user by id."""
        return parse(User, await self._http.json(calls.get(self._path_of(user))))

    async def delete(self, user: str | User) -> None:
        """Remove a user, by id."""
        await self._http.send(calls.delete(self._path_of(user)))


class AsyncProjects(_All[Project]):
    """The caller's projects; for administrators, all projects."""

    _path, _model = "/v1/projects", Project

    async def create(self, name: str, *, quota: Quota | Mapping[str, Any] | None = None) -> Project:
        """Create a project; only administrators may set its quota."""
        return parse(
            Project, await self._http.json(calls.create("/v1/projects", {"name": name, "quota": _quota(quota)}))
        )

    async def get(self, project: str) -> Project:
        """Return a project with its quota and current usage, by id."""
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
        """Add a user, or change their role: `member` or `owner`."""
        await self._http.send(calls.Call("PUT", self._member(project, user), json={"role": role}))

    async def remove_member(self, project: str | Project, user: str | User) -> None:
        """Remove a user from a project."""
        await self._http.send(calls.delete(self._member(project, user)))

    def _member(self, project: str | Project, user: str | User) -> str:
        return f"{self._path_of(project)}/members/{calls.segment(_id(user))}"


def _id(item: str | TokenInfo | User | Project | WebhookInfo) -> str:
    return item if isinstance(item, str) else item.id


def _quota(quota: Quota | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return only the fields that were set explicitly: in a change, None removes a limit."""
    if quota is None:
        return None
    return quota.model_dump(mode="json", exclude_unset=True) if isinstance(quota, Quota) else dict(quota)
