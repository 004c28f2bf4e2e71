"""The gateway's own responses to agents, in the format of their protocol."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from mleredux_gateway.config import Family
from mleredux_gateway.usage import Kind

PATHS: dict[str, Kind] = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}
COUNT_TOKENS = "/messages/count_tokens"
BUDGET = "budget_exhausted"
_STATUS = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    413: "INVALID_ARGUMENT", 502: "UNAVAILABLE",
}  # fmt: skip
_BUDGET_CODES = ("llm_calls", "llm_tokens", "llm_cost_usd")


def family_of(kind: Kind) -> Family:
    """Return the provider whose protocol it is."""
    return "google" if kind == "generate" else "anthropic" if kind == "messages" else "openai"


def below_v1(path: str) -> str:
    """Return the path after `/v1` (`/v1beta` for Google's protocol), which some clients include in their base URL."""
    return (path.removeprefix("/v1beta").removeprefix("/v1").rstrip("/")) or "/"


def given_key(headers: Any) -> str:
    """Return the key of a request, from the header of any protocol."""
    bearer = headers.get("Authorization", "")
    if bearer[:7].lower() == "bearer ":
        return str(bearer[7:].strip())
    return str(headers.get("X-Api-Key") or headers.get("Api-Key") or headers.get("X-Goog-Api-Key") or "")


def error(family: Family, status: int, kind: str, message: str, code: str | None = None) -> web.Response:
    """Return an error response; clients are told not to retry."""
    if family == "anthropic":
        content: dict[str, Any] = {"type": "error", "error": {"type": kind, "message": message}}
    elif family == "google":
        content = {"error": {"code": status, "message": message, "status": _STATUS.get(status, "INTERNAL")}}
    else:
        content = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return web.json_response(content, status=status, headers={"X-Should-Retry": "false"})


def refusal(family: Family, reason: str, message: str) -> web.Response:
    """Return the response to a call that is refused because of the run's budget or its content."""
    if reason in _BUDGET_CODES:
        return error(family, 403, BUDGET, message, reason)
    if reason == "model":
        kind = "not_found_error" if family == "anthropic" else "invalid_request_error"
        return error(family, 404, kind, message, "model_not_found")
    return error(family, 400, "invalid_request_error", message, reason)
