"""The server's URL and the token, from arguments or the environment."""

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
"""Maximum seconds without a response."""
STREAM_TIMEOUT = 60.0
"""Maximum seconds without data on a live stream; the server sends some every 15 seconds."""


@dataclass(frozen=True)
class Settings:
    """A server's URL and the caller's token, validated.

    Attributes:
        url: The URL without a trailing slash.
        token: The token, which is never displayed.
    """

    url: str
    token: str | None = field(repr=False)


def settings(url: str | None, token: str | SecretStr | None) -> Settings:
    """Return the settings, with missing values taken from the environment.

    Raises:
        UsageError: The URL is missing, or the URL or the token is invalid.
    """
    url = url or os.environ.get(URL_VARIABLE)
    token = token.get_secret_value() if isinstance(token, SecretStr) else token
    token = (token if token is not None else os.environ.get(TOKEN_VARIABLE, "")).strip()
    if not url:
        raise UsageError("No service is set.", hint=f"Pass its URL: `Client(url)`, or the variable {URL_VARIABLE}.")
    try:
        parsed = httpx.URL(url.strip())
    except (httpx.InvalidURL, TypeError):
        parsed = httpx.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise UsageError("The service's URL is invalid.", hint="Use http://127.0.0.1:8765 or https://host/path.")
    if parsed.userinfo or parsed.query or parsed.fragment:
        hint = "Pass the token separately: `Client(url, token)`."
        raise UsageError("The service's URL must contain only a host and a path.", hint=hint)
    if not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError("The token contains invalid characters.", hint="Copy it again, without quotes.")
    return Settings(str(parsed).rstrip("/"), token or None)


def verification(url: str) -> ssl.SSLContext | bool:
    """Return the setting for verifying certificates.

    Loading certificate authorities takes 0.2 seconds, so this is skipped if no certificate is needed; in that case, no
    certificate is trusted.
    """
    return True if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Bearer(httpx.Auth):
    """Adds the token to requests, so that no header that the HTTP client displays contains it."""

    def __init__(self, token: str | None) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        yield request

    def __repr__(self) -> str:
        return "Bearer(***)"
