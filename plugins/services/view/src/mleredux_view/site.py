"""The application: pages, static files, and the stream of changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined
from mleredux.errors import MlereduxError, NotFound
from mleredux_artifact_reports.shared import TEMPLATES as REPORT
from mleredux_artifact_reports.shared import visible
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from mleredux_view import texts
from mleredux_view.links import served
from mleredux_view.pages import MODULES
from mleredux_view.plugins import menu, plugin_pages, selections, templates
from mleredux_view.source import Source
from mleredux_view.visit import Declared, Shown, Visit, declared, missing

HERE = Path(__file__).parent
STATIC = HERE / "static"
_POLL_SECONDS = 1.0
_FIELDS = 2_000
_FORM_BYTES = 1 << 20
_KEPT = {"Cache-Control": "private, max-age=3600"}


def make_site(source_of: Callable[[Request], Source], root: str = "") -> Starlette:
    """Return the application.

    Args:
        source_of: What the visitor of a request may see.
        root: The path below which it is mounted.
    """
    routes: list[Any] = [
        Route("/static/report.css", _report_css),
        Mount("/static", _Static(directory=STATIC)),
        Route("/live", partial(_live, source_of)),
    ]
    pages = all_pages()
    routes += [Route(one.path, partial(_answer, source_of, one, root), methods=[one.method]) for one in pages]
    compressed = [Middleware(GZipMiddleware, minimum_size=2000, compresslevel=3)]
    nowhere = partial(_answer, source_of, Declared("", _nowhere, "GET"), root)

    async def missed(request: Request, _error: Exception) -> Response:
        return await nowhere(request)

    return Starlette(routes=routes, middleware=compressed, exception_handlers={404: missed})


def all_pages() -> list[Declared]:
    """Return the pages and actions, those of other plugins last."""
    return [*(one for module in MODULES for one in declared(module)), *plugin_pages()]


@cache
def environment() -> Environment:
    """Return the templates: own ones, the parts of the report, and those of plugins below the names of packages."""
    made = Environment(
        loader=ChoiceLoader([FileSystemLoader(HERE / "templates"), FileSystemLoader(REPORT), templates()]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(texts.FILTERS)
    made.globals.update(menu=menu(), selections=selections())
    return made


def rendered(shown: Shown, visit: Visit) -> str:
    """Return the page of a template, with deceiving characters escaped."""
    values = {"visit": visit, "link": visit.link, "static": visit.static, **visit.source.columns(), **shown.values}
    return visible(environment().get_template(shown.template).render(values))


async def _answer(source_of: Callable[[Request], Source], one: Declared, root: str, request: Request) -> Response:
    form: dict[str, list[str]] = {}
    if one.method == "POST":
        body = b""
        async for piece in request.stream():
            if len(body := body + piece) > _FORM_BYTES:
                return Response("The request is too large.\n", 413)
        form = parse_qs(body.decode("utf-8", "replace"))
    try:
        query = parse_qs(request.url.query, max_num_fields=_FIELDS)
    except ValueError:
        return Response(f"The address has more than {_FIELDS:,} values; select fewer runs.\n", 414)
    visit = Visit(
        source=source_of(request),
        parts=request.path_params,
        query=query,
        link=served(root),
        fragment=request.headers.get("hx-request") == "true" and "hx-history-restore-request" not in request.headers,
        form=form,
    )
    return await run_in_threadpool(answer, one, visit)


def answer(one: Declared, visit: Visit) -> Response:
    """Return the response of a page; an error is a page too."""
    status = 200
    error: Exception
    try:
        shown = one.function(visit)
        if isinstance(shown, Response):
            return shown
        text = rendered(shown, visit)
    except Exception as failure:  # a plugin's template may raise anything
        error = failure
        if not isinstance(error, MlereduxError):
            if one.registered is None:
                raise
            error = one.registered.failed(error)
        status = 404 if isinstance(error, NotFound) else 409
        text = rendered(Shown("problem.html.j2", {"problem": error}), visit)
    return HTMLResponse(text, status, {"Vary": "HX-Request"})


def _nowhere(_visit: Visit) -> Shown:
    raise missing("page with this address")


class _Static(StaticFiles):
    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers.update(_KEPT)
        return response


def _report_css(_request: Request) -> Response:
    return Response((REPORT / "report.css").read_bytes(), media_type="text/css", headers=_KEPT)


async def _live(source_of: Callable[[Request], Source], request: Request) -> Response:
    """Stream a message whenever something changed: of all runs, or of the run that the query names."""
    source, run_id = source_of(request), request.query_params.get("run")

    async def messages() -> AsyncIterator[str]:
        before = await run_in_threadpool(source.version, run_id)
        yield "retry: 2000\n\n"
        while not await request.is_disconnected():
            await asyncio.sleep(_POLL_SECONDS)
            now = await run_in_threadpool(source.version, run_id)
            yield f"event: changed\ndata: {now}\n\n" if now != before else ": nothing\n\n"
            before = now

    return StreamingResponse(messages(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
