"""Send requests, with retries, errors and streams."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx

from mleredux_client.answers import MAX_PROBLEM, document_of, problem_in
from mleredux_client.calls import Call
from mleredux_client.errors import UsageError
from mleredux_client.pairs import async_sleep
from mleredux_client.retries import Attempts, RetryPolicy
from mleredux_client.settings import STREAM_TIMEOUT, Bearer, Settings, settings, verification

_STREAMED = {"Accept-Encoding": "identity"}
"""Disables compression, since offsets and ranges refer to stored bytes."""


class AsyncHttp:
    """A connection pool to one server.

    Args:
        where: The server's URL and the token.
        timeout: Seconds without a response.
        policy: The retry policy.
        transport: An httpx transport to use instead of network connections.
    """

    def __init__(
        self,
        where: Settings,
        *,
        timeout: float,
        policy: RetryPolicy,
        user_agent: str,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = where.url
        self.policy = policy
        self._token = where.token
        self._timeout = timeout
        self._client = httpx.AsyncClient(
            auth=Bearer(where.token),
            headers={"User-Agent": user_agent, "Accept": "application/json"},
            timeout=timeout,
            verify=verification(where.url),
            transport=transport,
            limits=httpx.Limits(max_connections=1000, max_keepalive_connections=20),  # many streams may be open at once
            follow_redirects=False,  # the token is sent to no other server
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the pool without the token, which is taken from the environment of the process that unpickles it."""
        user_agent = str(self._client.headers["User-Agent"])
        return _again, (self.url, self._timeout, self.policy, user_agent)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def json(self, call: Call) -> Any:
        """Return the JSON of the response; None for a response without a body.

        Raises:
            MlereduxApiError: The server responds with an error, or not at all.
        """
        response = await self.send(call)
        return document_of(response) if response.content else None

    async def send(self, call: Call) -> httpx.Response:
        """Return the complete response, which may have status 304.

        Raises:
            MlereduxApiError: The server responds with an error, or not at all.
        """
        self._must_be_open()
        attempts = Attempts(self.policy, call.repeatable)
        while True:
            try:
                response = await self._once(call)
            except httpx.RequestError as error:
                pause = attempts.after(error, self.url)
            else:
                if response.is_success or response.status_code == 304:
                    return response
                if call.method == "DELETE" and response.status_code == 404 and attempts.failed:
                    return response  # an earlier try reached the server, but its response was lost
                problem = problem_in(response, response.content[:MAX_PROBLEM], self._token)
                pause = attempts.after(problem, self.url)
            await async_sleep(pause)

    @contextlib.asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[httpx.Response]:
        """Try once to open a response that is read in pieces; the caller decides whether to retry.

        Raises:
            MlereduxApiError: The server responds with an error.
            httpx.RequestError: The connection broke, now or while the response is read.
        """
        self._must_be_open()
        timeout = httpx.Timeout(self._timeout, read=max(self._timeout, STREAM_TIMEOUT))
        request = self._client.build_request(
            call.method,
            self.url + call.path,
            params=dict(call.params) or None,
            headers={**_STREAMED, **call.headers},
            timeout=timeout,
        )
        response = await self._client.send(request, stream=True)
        try:
            if not response.is_success:
                body = b""
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) >= MAX_PROBLEM:
                        break
                raise problem_in(response, body[:MAX_PROBLEM], self._token)
            yield response
        finally:
            await response.aclose()

    def _must_be_open(self) -> None:
        if self._client.is_closed:
            raise UsageError("This client is closed.", hint="Use the client and its results inside its `with` block.")

    async def _once(self, call: Call) -> httpx.Response:
        with contextlib.ExitStack() as opened:
            more: dict[str, Any] = {}
            if call.file is not None:
                file = opened.enter_context(call.file.open("rb"))
                more = {"data": dict(call.form or {}), "files": {"file": (call.file.name, file)}}
            elif call.json is not None:
                more = {"json": call.json}
            return await self._client.request(
                call.method,
                self.url + call.path,
                params=dict(call.params) or None,
                headers=dict(call.headers),
                timeout=httpx.Timeout(self._timeout, read=self._timeout + call.patience),
                **more,
            )


def _again(url: str, timeout: float, policy: RetryPolicy, user_agent: str) -> AsyncHttp:
    return AsyncHttp(settings(url, None), timeout=timeout, policy=policy, user_agent=user_agent)
