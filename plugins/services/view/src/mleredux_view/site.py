"""The application: pages, static files, and the stream of changes."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, nullcontext, suppress
from dataclasses import replace
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, PrefixLoader, StrictUndefined
from mleredux.errors import MlereduxError, NotFound
from mleredux_artifact_reports.shared import TEMPLATES as REPORT
from mleredux_artifact_reports.shared import visible
from multipart import MultipartError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route, compile_path
from starlette.staticfiles import StaticFiles

from mleredux_view import texts
from mleredux_view.forms import MAX_FILES_BYTES, TooLarge, read_form, refilled
from mleredux_view.links import served
from mleredux_view.pages import MODULES
from mleredux_view.plugins import added, menu, plugin_pages, selections, templates
from mleredux_view.source import Source
from mleredux_view.visit import CSRF, Declared, Registered, Shown, Visit, declared, missing

HERE = Path(__file__).parent
STATIC = HERE / "static"
_POLL_SECONDS = 1.0
_STREAM_POLLS = 300
_FIELDS = 2_000
_VARY = {"Vary": "HX-Request"}
_KEPT = {"Cache-Control": "private, max-age=3600"}


def make_site(
    source_of: Callable[[Request], Source], root: str = "", also: Sequence[Registered] = (), actions: bool = True
) -> Starlette:
    """Return the application.

    Each request's scope must contain `session_secret`, without which no form is accepted.

    Args:
        source_of: Returns the source with the data that the visitor of a request may see.
        root: The path at which it is mounted.
        also: Pages and panels that exist only on this site.
        actions: Whether actions of plugins are enabled.
    """
    add_templates(entry.package for entry in also)
    routes: list[Any] = [
        Route("/static/report.css", _report_css),
        Mount("/static", _Static(directory=STATIC)),
        Route("/live", partial(_live, source_of)),
    ]
    pages = [page for page in all_pages(also) if actions or page.method == "GET" or page.registered in (None, *also)]
    routes += [Route(page.path, partial(_answer, source_of, page, root, also), methods=[page.method]) for page in pages]
    compressed = [Middleware(GZipMiddleware, minimum_size=2000, compresslevel=3)]
    nowhere = partial(_answer, source_of, Declared("", _not_found, "GET"), root, also)

    async def missed(request: Request, _error: Exception) -> Response:
        return await nowhere(request)

    return Starlette(routes=routes, middleware=compressed, exception_handlers={404: missed})


def all_pages(also: Iterable[Registered] = ()) -> list[Declared]:
    """Return the pages and actions, with those of other plugins last."""
    return [*(page for module in MODULES for page in declared(module)), *plugin_pages([*added(), *also])]


def add_templates(packages: Iterable[str]) -> None:
    """Make templates of packages available, with the package names as prefixes."""
    loader = environment().loader
    assert isinstance(loader, ChoiceLoader)
    loader.loaders = [*loader.loaders, PrefixLoader({name: PackageLoader(name) for name in packages})]


@cache
def environment() -> Environment:
    """Return the template environment: own templates, parts of the report, and templates of plugins prefixed with
    package names."""
    jinja = Environment(
        loader=ChoiceLoader([FileSystemLoader(HERE / "templates"), FileSystemLoader(REPORT), templates()]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja.filters.update(texts.FILTERS)
    jinja.globals.update(menu=menu(), selections=selections())
    return jinja


def rendered(shown: Shown, visit: Visit) -> str:
    """Render the template of a page, escaping deceptive characters."""
    known = {"visit": visit, "link": visit.link, "static": visit.static, "csrf": visit.csrf}
    values = {**known, **visit.source.columns(), **shown.values}
    return visible(visit.source.shown(environment().get_template(shown.template).render(values)))


def sign_in_page(root: str, problem: str = "", provider: str = "") -> str:
    """Return the sign-in page, which posts a token to `sign-in` or redirects users of an identity provider to
    `oidc`."""
    return environment().get_template("sign_in.html.j2").render(link=served(root), problem=problem, provider=provider)


async def _answer(
    source_of: Callable[[Request], Source], target: Declared, root: str, also: Sequence[Registered], request: Request
) -> Response:
    form: dict[str, list[str]] = {}
    files: dict[str, Path] = {}
    session = str(request.scope.get("session_secret", ""))
    async with AsyncExitStack() as stack:
        if target.method == "POST":
            try:
                form, files = await read_form(request, stack)
            except TooLarge:
                return Response(f"The request is too large: files have at most {MAX_FILES_BYTES:,} bytes.\n", 413)
            except MultipartError:
                return Response("The form is malformed.\n", 400)
            if not session or not hmac.compare_digest(form.get(CSRF, [""])[-1].encode(), session.encode()):
                return Response("The form is from another site, or its session has ended. Open it again.\n", 403)
        try:
            query = parse_qs(request.url.query, max_num_fields=_FIELDS)
        except ValueError:
            return Response(f"The address has more than {_FIELDS:,} values; select fewer runs.\n", 414)
        source = await run_in_threadpool(source_of, request)
        boosted = request.headers.get("hx-request") == "true" and "hx-history-restore-request" not in request.headers
        path = request.url.path
        visit = Visit(
            source, request.path_params, query, served(root), False, boosted, form, files, session, also, path
        )
        return await run_in_threadpool(answer, target, visit)


def answer(target: Declared, visit: Visit) -> Response:
    """Return the response for a page; errors are pages too, and a refused form is shown again with the values that were
    entered."""
    try:
        with target.registered.isolated() if target.registered else nullcontext():
            shown = target.function(visit)
            return shown if isinstance(shown, Response) else HTMLResponse(rendered(shown, visit), shown.status, _VARY)
    except MlereduxError as error:
        return _problem_page(target, visit, error)


def _problem_page(target: Declared, visit: Visit, error: MlereduxError) -> Response:
    """Return the response for an error, which is not kept in the frames of its own traceback: they may hold a large
    file."""
    status = 404 if isinstance(error, NotFound) else 409
    again = _page_of_form(visit, error) if target.method == "POST" else None
    if again is None:
        return HTMLResponse(rendered(Shown("problem.html.j2", {"problem": error}), visit), status, _VARY)
    page = answer(*again)
    if page.status_code != HTTPStatus.OK or not isinstance(page, HTMLResponse):
        return page
    return HTMLResponse(refilled(bytes(page.body).decode(), visit.path, visit.form), status, _VARY)


def _page_of_form(visit: Visit, error: MlereduxError) -> tuple[Declared, Visit] | None:
    """Return the page that contains the form, and a visit of it that explains why the form was refused."""
    if visit.back is None:
        return None
    path, query = visit.back
    if (match := find_page(all_pages(visit.also), "/" + unquote(path).removeprefix(visit.link()))) is None:
        return None
    target, parts = match
    return target, replace(visit, parts=parts, query=query, path=path, problem=error)


def find_page(pages: Iterable[Declared], path: str) -> tuple[Declared, dict[str, str]] | None:
    """Return the page for a path, and the values for the names in braces in its URL."""
    for page in pages:
        if page.method == "GET" and (match := compile_path(page.path)[0].match(path)):
            return page, match.groupdict()
    return None


def _not_found(_visit: Visit) -> Shown:
    raise missing("page with this address")


class _Static(StaticFiles):
    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers.update(_KEPT)
        return response


def _report_css(_request: Request) -> Response:
    return Response((REPORT / "report.css").read_bytes(), media_type="text/css", headers=_KEPT)


async def _live(source_of: Callable[[Request], Source], request: Request) -> Response:
    """Stream a message on each change of any run, or of the run named in the query.

    `since` is the version shown on the page; without it, changes are counted from the request.
    """
    source, run_id = await run_in_threadpool(source_of, request), request.query_params.get("run")
    try:
        before = request.query_params.get("since") or await run_in_threadpool(source.version, run_id)
    except MlereduxError as error:
        return Response(f"{error.message}\n", 404)

    async def messages() -> AsyncIterator[str]:
        nonlocal before
        yield "retry: 2000\n\n"
        with suppress(MlereduxError):  # the run was deleted, or is damaged
            for _ in range(_STREAM_POLLS):  # the browser then reconnects, so that its access is checked again
                if await request.is_disconnected():
                    return
                await asyncio.sleep(_POLL_SECONDS)
                now = await run_in_threadpool(source.version, run_id)
                yield f"event: changed\ndata: {now}\n\n" if now != before else ": nothing\n\n"
                before = now

    return StreamingResponse(messages(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
