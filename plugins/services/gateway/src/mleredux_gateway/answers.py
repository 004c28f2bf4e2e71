"""The gateway's own responses to agents, in the format of their protocol."""

from __future__ import annotations

from aiohttp import web
from mleredux_llm_protocols import Family
from mleredux_llm_protocols.routes import error_body

BUDGET = "budget_exhausted"
_BUDGET_CODES = ("llm_calls", "llm_tokens", "llm_cost_usd")


def error(family: Family, status: int, kind: str, message: str, code: str | None = None) -> web.Response:
    """Return an error response that asks clients not to retry."""
    content = error_body(family, status, kind, message, code)
    return web.json_response(content, status=status, headers={"X-Should-Retry": "false"})


def refusal(family: Family, reason: str, message: str) -> web.Response:
    """Return the response to a call that is refused because of the run's budget or its content."""
    if reason in _BUDGET_CODES:
        return error(family, 403, BUDGET, message, reason)
    if reason == "model":
        kind = "not_found_error" if family == "anthropic" else "invalid_request_error"
        return error(family, 404, kind, message, "model_not_found")
    return error(family, 400, "invalid_request_error", message, reason)
