"""Errors as problem details (RFC 9457): one sentence about what is wrong, and one about what to do."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from http import HTTPStatus
from importlib.util import find_spec
from typing import Any, TypeVar, get_args

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from mleredux.errors import MlereduxError, NotFound, StoreError
from mleredux.models.base import plain_message
from sqlalchemy import exc
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from mleredux_server.operations.places import without_places

RecordT = TypeVar("RecordT")

_LOG = structlog.get_logger()

STATUS = {
    "unauthenticated": 401,
    "forbidden": 403,
    "quota-exceeded": 403,
    "not-found": 404,
    "not-yet": 404,
    "method-not-allowed": 405,
    "too-slow": 408,
    "conflict": 409,
    "idempotency-conflict": 409,
    "precondition-failed": 412,
    "too-large": 413,
    "range": 416,
    "invalid": 422,
    "idempotency-mismatch": 422,
    "too-many-requests": 429,
    "internal": 500,
    "unavailable": 503,
    "no-space": 507,
}


class Problem(MlereduxError):
    """An error sent as a response.

    Args:
        slug: A key of `STATUS`.
        detail: One sentence about what is wrong.
        hint: One sentence about what to do.
        headers: Response headers.
        errors: The invalid fields, for `invalid`.
    """

    def __init__(
        self,
        slug: str,
        detail: str,
        *,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
        errors: list[dict[str, str]] | None = None,
    ) -> None:
        super().__init__(detail, hint=hint)
        self.slug, self.detail, self.errors = slug, detail, errors
        self.headers = dict(headers or {})

    @property
    def status(self) -> int:
        """Its HTTP status."""
        return STATUS[self.slug]


class Missing(Problem, NotFound):
    """A resource that does not exist, or that the user can't see."""


def not_found(kind: str, name: str) -> Problem:
    """Return the error for a resource that does not exist or belongs to another user, with the same text for both."""
    return Missing("not-found", f"There is no {kind} {name[:200]!r} that you can access.")


def existing(record: RecordT | None, kind: str, name: str) -> RecordT:
    """Return a record; if it is None, raise `not_found`."""
    if record is None:
        raise not_found(kind, name)
    return record


def answer(request: Request, problem: Problem) -> Response:
    """Return the problem as a response."""
    settings = request.app.state.service.settings
    folders = (settings.runs_dir, settings.data_dir)
    content: dict[str, Any] = {
        "type": f"urn:mleredux:problem:{problem.slug}",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": without_places(problem.detail, *folders),
        "hint": without_places(problem.hint, *folders),
        "instance": getattr(request.state, "id", None),
    }
    if problem.errors is not None:
        content["errors"] = problem.errors
    headers = {"X-Request-Id": str(content["instance"])} | problem.headers
    return JSONResponse(content, problem.status, headers, media_type="application/problem+json")


def of_error(error: Exception) -> Problem:
    """Return the problem for an error that was not handled earlier."""
    match error:
        case Problem():
            return error
        case NotFound():
            return Problem("not-found", error.message, hint=error.hint)
        case StoreError():
            return Problem("unavailable", error.message, hint=error.hint)
        case MlereduxError():
            return Problem("invalid", error.message, hint=error.hint)
        case HTTPException():
            slug = {401: "unauthenticated", 404: "not-found", 405: "method-not-allowed", 413: "too-large"}
            return Problem(slug.get(error.status_code, "invalid"), f"{error.detail}.", headers=error.headers)
        case exc.NoResultFound():
            return Problem("not-found", "It was deleted in the meantime.")
        case exc.IntegrityError():
            return Problem("conflict", "A concurrent request made the same change.", hint="Check the current state.")
        case exc.DataError() | UnicodeEncodeError():
            return Problem("invalid", "Some text or number in the request can't be stored.")
        case exc.OperationalError() if _code(error) in (sqlite3.SQLITE_FULL, "53100"):
            return of_error(OSError(errno.ENOSPC, "full"))
        case exc.OperationalError() | exc.InternalError() | exc.InterfaceError() | exc.TimeoutError():
            hint = "Try again in a moment; nothing was changed."
            can = "read-only now" if _code(error) in (sqlite3.SQLITE_READONLY, "25006") else "not responding"
            return Problem("unavailable", f"The database is {can}.", hint=hint, headers={"Retry-After": "1"})
        case OSError() if error.errno == errno.EROFS:
            return Problem("unavailable", "The server's disk is read-only.", hint="Contact the server administrator.")
        case OSError() if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "Contact the server administrator, or delete runs."
            return Problem("no-space", "The server's disk is full; nothing was changed.", hint=hint)
    return Problem("internal", "Internal error.", hint="Report the request's id to the server administrator.")


def install(app: FastAPI) -> None:
    """Register the error handlers."""

    async def handle(request: Request, error: Exception) -> Response:
        problem = (
            invalid(error.errors(), _body_of(request)) if isinstance(error, RequestValidationError) else of_error(error)
        )
        if problem.status == HTTPStatus.METHOD_NOT_ALLOWED:
            problem.headers["Allow"] = _allowed(app, request.url.path, problem.headers.get("Allow", "GET"))
        if problem.status >= 500:
            known = isinstance(error, StoreError)
            _LOG.error("request failed", problem=problem.slug, reason=problem.detail, exc_info=None if known else error)
        return answer(request, problem)

    stored = (exc.NoResultFound, exc.DBAPIError, exc.TimeoutError, UnicodeEncodeError)
    for kind in (MlereduxError, RequestValidationError, HTTPException, *stored, OSError, Exception):
        app.add_exception_handler(kind, handle)


def _allowed(app: FastAPI, path: str, known: str) -> str:
    """Return the value of the header `Allow` for a path: the methods of all its routes; `known` are those of the first
    one."""
    methods = {
        method.upper()
        for template, operations in app.openapi()["paths"].items()
        if compile_path(template)[0].match(path)
        for method in operations
    } | set(known.split(", "))
    return ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))


def _body_of(request: Request) -> Any:
    """Return the model of the body of a request's route."""
    field = getattr(request.scope.get("route"), "body_field", None)
    return getattr(getattr(field, "field_info", None), "annotation", None)


def _code(error: Exception) -> object:
    """Return the code of a database's error: an integer of SQLite, or PostgreSQL's five characters."""
    original = getattr(error, "orig", None)
    return getattr(original, "sqlite_errorcode", None) or getattr(original, "sqlstate", None)


def invalid(errors: Sequence[Mapping[str, Any]], model: Any = None) -> Problem:
    """Return the problem for invalid fields, each named as in the request, with suggestions for misspelled names.

    Args:
        errors: Errors from pydantic.
        model: Model of the body; None: unknown.
    """
    problems: list[dict[str, str]] = []
    for item in errors[:50]:
        place = [str(part) for part in item["loc"]]
        where = place[1:] if place[:1] in (["body"], ["query"], ["path"], ["header"]) else place
        message = plain_message(item)
        if item["type"] == "extra_forbidden":
            near = get_close_matches(where[-1], _fields(model, where[:-1]), n=1, cutoff=0.5)
            message = "There is no such field" + (f". Did you mean {near[0]}?" if near else "")
        elif item["type"] == "missing":
            message = "Missing"
        problems.append({"field": ".".join(where) or "body", "message": message})
    first = problems[0] if problems else {"field": "body", "message": "is malformed"}
    end = "" if first["message"].endswith("?") else "."
    return Problem("invalid", f"{first['field']}: {first['message']}{end}", errors=problems)


def _fields(model: Any, path: Sequence[str]) -> list[str]:
    """Return the names of the fields at a location in a model."""
    for name in path:
        field = getattr(model, "model_fields", {}).get(name)
        if field is None:
            return []
        kinds = (field.annotation, *get_args(field.annotation))
        model = next((kind for kind in kinds if hasattr(kind, "model_fields")), None)
    return list(getattr(model, "model_fields", {}))


def require_statistics() -> None:
    """Check that `mleredux_experiments.shared`, an extra of the server, can be imported.

    Raises:
        Problem: It is not installed.
    """
    if find_spec("mleredux_experiments") is None:
        hint = "Ask its administrator to install mleredux-server[experiments]; budgets do not need it."
        raise Problem("not-found", "This server can't analyze experiments.", hint=hint)
