"""Mount the pages in the app. They are loaded on the first request, since many clients use no pages."""

from __future__ import annotations

import threading

from fastapi import FastAPI, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mleredux_server.service import Service

ROOT = "/ui"
"""The path under which the pages are mounted."""


def install(app: FastAPI, service: Service) -> None:
    """Add the pages to an app; its root redirects to them."""
    pages = LazyPages(app)
    if service.settings.oidc_issuer:
        pages.load()  # errors in its settings are reported at startup
    app.mount(ROOT, pages, name="ui")

    @app.get("/", include_in_schema=False)
    def home() -> Response:
        """Redirect to the pages."""
        return RedirectResponse(f"{ROOT}/", 303)


class LazyPages:
    """Loads the pages on the first request.

    Args:
        app: The server's application.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app, self._lock = app, threading.Lock()
        self._pages: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        pages = await run_in_threadpool(self.load) if self._pages is None else self._pages
        await pages(scope, receive, send)

    def load(self) -> ASGIApp:
        """Load the pages, unless they are already loaded."""
        with self._lock:
            if self._pages is None:
                from mleredux_server.web.site import signed_in

                self._pages = signed_in(self._app)
            return self._pages
