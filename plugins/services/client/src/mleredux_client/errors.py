"""One family of errors, each with one sentence about the problem, and a hint."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

_SHOWN = 600
"""Maximum characters of a message from the server that are kept."""


class MlereduxApiError(Exception):
    """Base of every error that the client raises on purpose.

    Attributes:
        detail: One sentence about what is wrong.
        hint: What to do, if known.
        status: The HTTP status; None without a response.
        request_id: Id of the request in the server's logs.
        slug: The type of problem, such as `not-found` or `quota-exceeded`.
        fields: The invalid fields, for status 422: `[{"field": …, "message": …}]`.
        retry_after: Seconds after which to retry, if the server specifies it.
    """

    def __init__(
        self,
        detail: str,
        *,
        hint: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        slug: str | None = None,
        fields: list[dict[str, Any]] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.hint = hint
        self.status = status
        self.request_id = request_id
        self.slug = slug
        self.fields = fields or []
        self.retry_after = retry_after

    @property
    def message(self) -> str:
        """The same as `detail`; mleredux's own errors use this name."""
        return self.detail

    def __str__(self) -> str:
        problems = [f"{item['field']}: {item['message']}" for item in self.fields]
        wrong = [text for text in problems if text not in self.detail]
        parts = [self.detail, f"({'; '.join(wrong)})" if wrong else None, self.hint]
        return " ".join(part for part in parts if part)


class Unauthenticated(MlereduxApiError):
    """The token is missing, unknown, or no longer valid."""


class Forbidden(MlereduxApiError):
    """The token may not do this."""


class QuotaExceeded(Forbidden):
    """The project's quota is used up."""


class NotFound(MlereduxApiError):
    """It does not exist, or belongs to another user."""


class NotYet(NotFound):
    """The run has not reached that point yet."""


class Conflict(MlereduxApiError):
    """The action is not possible in the current state."""


class PreconditionFailed(Conflict):
    """The resource was changed in the meantime."""


class TooLarge(MlereduxApiError):
    """The request is too large for the server."""


class RangeNotSatisfiable(MlereduxApiError):
    """The requested range does not exist."""


class Invalid(MlereduxApiError):
    """The request is invalid; `fields` lists the invalid fields."""


class TooManyRequests(MlereduxApiError):
    """There were too many requests; retry after `retry_after` seconds."""


class Unavailable(MlereduxApiError):
    """The server is temporarily unavailable."""


class Unreachable(Unavailable):
    """There was no response at all."""


class NoSpace(MlereduxApiError):
    """The server's disk is full."""


class ServerError(MlereduxApiError):
    """The server failed."""


class WaitTimeout(MlereduxApiError, TimeoutError):
    """Waiting took too long; the run or build continues."""


class WorkFailed(MlereduxApiError):
    """A grading or a build failed on the server."""


class UnexpectedAnswer(MlereduxApiError):
    """The response does not come from a mleredux server."""


class UnsafePath(MlereduxApiError):
    """A name from the server would point outside its folder."""


class Damaged(MlereduxApiError):
    """Downloaded bytes do not match the manifest."""


class UsageError(MlereduxApiError, ValueError):
    """The client was called with invalid arguments."""


_BY_SLUG: dict[str, type[MlereduxApiError]] = {"not-yet": NotYet, "quota-exceeded": QuotaExceeded}
_BY_STATUS: dict[int, type[MlereduxApiError]] = {
    400: Invalid,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: PreconditionFailed,
    413: TooLarge,
    416: RangeNotSatisfiable,
    422: Invalid,
    429: TooManyRequests,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
    507: NoSpace,
}


def problem_of(
    status: int, headers: Mapping[str, str], body: bytes, *, request: str, secret: str | None = None
) -> MlereduxApiError:
    """Return the error for a response.

    Args:
        status: The HTTP status, 300 or more.
        headers: The response headers, with case-insensitive names.
        body: Problem details (RFC 9457), or any other body from a proxy.
        request: Method and path, for the message if the body has none.
        secret: A secret that is masked wherever it occurs.
    """

    def text(value: object) -> str | None:
        if not isinstance(value, str) or not value.strip():
            return None
        masked = value.replace(secret, "***") if secret else value
        return "".join(letter if letter.isprintable() else " " for letter in masked)[:_SHOWN].strip()

    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    doc: dict[str, Any] = document if isinstance(document, dict) else {}
    slug = (text(doc.get("type")) or "").removeprefix("urn:mleredux:problem:") or None
    listed = doc.get("errors")
    fields = [
        {"field": text(str(item.get("field"))) or "", "message": text(str(item.get("message"))) or ""}
        for item in (listed if isinstance(listed, list) else [])[:100]
        if isinstance(item, dict)
    ]
    kind = _BY_SLUG.get(slug or "") or _BY_STATUS.get(status) or (ServerError if status >= 500 else MlereduxApiError)
    return kind(
        text(doc.get("detail")) or text(doc.get("title")) or f"The service answered {request} with status {status}.",
        hint=text(doc.get("hint")) or _hint(status, headers, text),
        status=status,
        request_id=text(doc.get("instance")) or text(headers.get("X-Request-Id")),
        slug=slug,
        fields=fields,
        retry_after=retry_after(headers),
    )


def _hint(status: int, headers: Mapping[str, str], text: Callable[[object], str | None]) -> str | None:
    """Return a hint for a response without one."""
    if 300 <= status < 400:
        return f"It points to {text(headers.get('Location'))}; use that service's URL if you trust it with the token."
    if status == 401:
        return "Pass a token: `Client(token=…)`, or the environment variable MLEREDUX_TOKEN."
    return None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in `Retry-After`, which may be a number or a date."""
    value = headers.get("Retry-After", "").strip()
    if not value:
        return None
    if value.isdecimal() and len(value) < 10:
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
