"""Where the service is and who we are, from arguments or from the environment."""

from __future__ import annotations

import os
import ssl
from collections.abc import Generator
from dataclasses import dataclass, field

import httpx
from pydantic import SecretStr

from mleredux_client.errors import UsageError

URL_VARIABLE = "MLEREDUX_SERVER"
TOKEN_VARIABLE = "MLEREDUX_TOKEN"
DEFAULT_TIMEOUT = 30.0
"""Seconds without an answer."""
STREAM_TIMEOUT = 60.0
"""Seconds without a byte on a live stream; the service says something every 15."""


@dataclass(frozen=True)
class Settings:
    """A service's address and the caller's token, checked.

    Attributes:
        url: Without a slash at its end.
        token: Never shown.
    """

    url: str
    token: str | None = field(repr=False)


def settings(url: str | None, token: str | SecretStr | None) -> Settings:
    """Fill in what is not given from the environment.

    Raises:
        UsageError: There is no URL, or URL or token can't be right.
    """
    url = url or os.environ.get(URL_VARIABLE)
    token = token.get_secret_value() if isinstance(token, SecretStr) else token
    token = (token if token is not None else os.environ.get(TOKEN_VARIABLE, "")).strip()
    if not url:
        raise UsageError("No service is named.", hint=f"Give its URL: `Client(url)`, or the variable {URL_VARIABLE}.")
    try:
        parsed = httpx.URL(url.strip())
    except (httpx.InvalidURL, TypeError):
        parsed = httpx.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise UsageError("The service's URL is none.", hint="It looks like http://127.0.0.1:8765 or https://host/path.")
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise UsageError(
            "The service's URL has more in it than a host and a path.",
            hint="The token goes apart: `Client(url, token)`.",
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError("The token has characters that no token has.", hint="Copy it again, without quotes.")
    return Settings(str(parsed).rstrip("/"), token or None)


def verification(url: str) -> ssl.SSLContext | bool:
    """How certificates are checked.

    Loading the authorities takes a fifth of a second: where no certificate is met, they are left out, and nobody is
    trusted.
    """
    return True if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Bearer(httpx.Auth):
    """Adds the token to requests; it is in no header that the HTTP client would show."""

    def __init__(self, token: str | None) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        yield request

    def __repr__(self) -> str:
        return "Bearer(***)"
