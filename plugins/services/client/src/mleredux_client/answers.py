"""Parse responses of a server."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import httpx
from mleredux.models import Event, first_problem, read
from pydantic import BaseModel, ValidationError

from mleredux_client.errors import MlereduxApiError, UnexpectedAnswer, Unreachable, problem_of
from mleredux_client.events import Message

M = TypeVar("M", bound=BaseModel)

MAX_PROBLEM = 64 * 1024
"""Maximum bytes of an error's body that are read."""


def document_of(response: httpx.Response) -> Any:
    """Return the JSON of a response.

    Raises:
        UnexpectedAnswer: It is not JSON.
    """
    try:
        return response.json()
    except (ValueError, RecursionError):
        raise unexpected(response, "not JSON") from None


def parse(model: type[M], document: Any) -> M:
    """Return a response's data as a model.

    Raises:
        UnexpectedAnswer: The data does not match the model. The message contains no values, since a token may be among
            them.
    """
    try:
        return read(model, document)
    except ValidationError as error:
        problem = first_problem(error)
        place = problem.place[:100] or "the whole"
        raise UnexpectedAnswer(
            f"The service's response is not a valid {model.__name__} ({place}: {problem.message[:200]}).",
            hint="Upgrade mleredux-client to the version of the service.",
        ) from None


def unexpected(response: httpx.Response, fault: str) -> UnexpectedAnswer:
    """Return the error for a response that does not come from a mleredux server."""
    request = response.request
    return UnexpectedAnswer(
        f"The response to {request.method} {request.url.path} is {fault}.",
        hint="Check that this is the URL of a mleredux service.",
        status=response.status_code,
    )


def problem_in(response: httpx.Response, body: bytes, secret: str | None) -> MlereduxApiError:
    """Return the error for a response."""
    request = response.request
    request_line = f"{request.method} {request.url.path}"
    return problem_of(response.status_code, response.headers, body, request=request_line, secret=secret)


def unreachable(url: str, error: httpx.RequestError) -> Unreachable:
    """Return the error for a request without a response, in one sentence with the URL."""
    known: dict[type[httpx.RequestError], str] = {
        httpx.ConnectError: "can't be reached",
        httpx.ConnectTimeout: "did not accept the connection in time",
        httpx.ReadTimeout: "did not respond in time",
        httpx.PoolTimeout: "has too many concurrent requests from this client",
    }
    fault = known.get(type(error), "closed the connection")
    reason = str(error).strip()[:200]
    return Unreachable(
        f"{url} {fault}{f' ({reason})' if reason else ''}.", hint="Check the URL, and that the service is running."
    )


def items_of(page: Any, model: type[M]) -> list[M]:
    """Return the items of a page; empty if there is no page.

    Raises:
        UnexpectedAnswer: It is not a page.
    """
    if page is None:
        return []
    if not isinstance(page, dict) or not isinstance(page.get("items"), list):
        raise UnexpectedAnswer("The service's response is not a list.", hint="Upgrade mleredux-client.")
    return [parse(model, item) for item in page["items"]]


def event_of(message: Message) -> Event:
    """Return the event in a message of a live stream."""
    return parse(Event, _data_of(message))


def log_text_of(message: Message) -> str:
    """Return the piece of a log in a message of a live stream."""
    data = _data_of(message)
    return data["text"] if isinstance(data, dict) and isinstance(data.get("text"), str) else ""


def _data_of(message: Message) -> Any:
    try:
        return json.loads(message.data)
    except (ValueError, RecursionError):
        raise UnexpectedAnswer("The service sent an event that is not JSON.") from None
