"""Access control: the one-time URL, the checks of `Host` and `Origin`, and the headers of every response."""

from __future__ import annotations

import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The content security policy of pages."""
HEADERS = {
    "Cache-Control": "private, no-cache",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers added to every response that does not set them."""
ONCE = "once"
"""The query parameter of the one-time URL."""


class Guard:
    """Middleware that accepts only requests from the browser that opened the one-time URL.

    Args:
        app: The application with the pages.
        port: The port on which the program listens; requests for other hosts are refused (DNS rebinding).

    Attributes:
        once: The secret of the one-time URL, which is exchanged for a cookie by the first request that contains it.
    """

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app, self._cookie_name = app, f"mleredux-{port}"
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self.once: str | None = secrets.token_urlsafe(32)
        self._session, self._csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        scope["session_secret"] = self._csrf
        await (self._refused(scope) or self._app)(scope, receive, sending)

    def _refused(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host not in self._hosts:
            return PlainTextResponse("This server only accepts requests on the loopback interface.\n", 421)
        token = parse_qs(scope["query_string"].decode("latin-1")).get(ONCE, [""])[0]
        if token and self.once is not None and hmac.compare_digest(token.encode(), self.once.encode()):
            self.once = None
            answer = RedirectResponse(scope["path"], 303)
            answer.set_cookie(self._cookie_name, self._session, httponly=True, samesite="strict", path="/")
            return answer
        if not self._known(headers):
            words = "Open the address that `mleredux view` printed; it works once. Restart the command for a new one.\n"
            return PlainTextResponse(words, 401)
        if scope["method"] not in ("GET", "HEAD") and not from_here(headers, host):
            return PlainTextResponse("The request comes from another site.\n", 403)
        return None

    def _known(self, headers: Headers) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie_name)
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self._session.encode())


def from_here(headers: Headers, host: str) -> bool:
    """Return whether a request that changes something comes from a page of this site."""
    site = headers.get("sec-fetch-site", "same-origin")
    return site == "same-origin" and headers.get("origin", "") in (f"http://{host}", f"https://{host}")
