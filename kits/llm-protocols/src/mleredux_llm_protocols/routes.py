"""The parts of a call outside its body: the endpoint, the key, errors, and lists of models.

In Google's protocol, the model and whether to stream are not fields of a request but parts of its URL. This package
expects them as `model` and `stream` in the body, as in the other protocols.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote

Kind = Literal["chat", "responses", "messages", "generate"]
"""OpenAI's chat completions, OpenAI's responses, Anthropic's messages, Google's generateContent."""
Family = Literal["openai", "anthropic", "google"]
"""The provider whose keys, errors and lists of models a protocol uses."""
PATHS: dict[str, Kind] = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}
COUNT_TOKENS = "/messages/count_tokens"
METHODS = {"generateContent": False, "streamGenerateContent": True, "countTokens": False}
"""Methods of Google's protocol, and whether they stream."""
_GOOGLE_PATH = re.compile(r"(?:/v1(?:beta)?)?/models/([^/:]{1,200}):(\w+)")
_GOOGLE_STATUSES = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL",
}  # fmt: skip


def client_variables(url: str, key: str) -> dict[str, str]:
    """Return the environment variables that point common clients to a server for all protocols.

    Args:
        url: The server's URL.
        key: The key that clients send.
    """
    openai = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_BASE": f"{url}/v1", "OPENAI_API_KEY": key}
    anthropic = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_BASE": url, "ANTHROPIC_API_KEY": key}
    return {**openai, **anthropic, "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": key}


def below_v1(path: str) -> str:
    """Return the path after `/v1` (`/v1beta` for Google's protocol), which some clients include in their base URL."""
    return (path.removeprefix("/v1beta").removeprefix("/v1").rstrip("/")) or "/"


def google_call(path: str) -> tuple[str, str] | None:
    """Return the model and the method of a URL's path; None if it is not one of the supported methods."""
    match = _GOOGLE_PATH.fullmatch(path)
    return (match[1], match[2]) if match and match[2] in METHODS else None


def google_path(model: str, method: str) -> str:
    """Return the path of a call under `/v1beta`."""
    return f"/models/{quote(model, safe='')}:{method}" + ("?alt=sse" if METHODS[method] else "")


def kind_at(path: str) -> Kind | None:
    """Return the kind of a model call from the path after `/v1`; None for any other request."""
    call = google_call(path)
    return PATHS.get(path) if call is None or call[1] == "countTokens" else "generate"


def family_at(path: str, headers: Mapping[str, str]) -> Family:
    """Return the provider whose client sends a request."""
    if google_call(path) is not None or (path not in PATHS and "X-Goog-Api-Key" in headers):
        return "google"
    return "anthropic" if "Anthropic-Version" in headers or path.startswith("/messages") else "openai"


def family_of(kind: Kind) -> Family:
    """Return the provider of a protocol."""
    return "google" if kind == "generate" else "anthropic" if kind == "messages" else "openai"


def key_in(headers: Mapping[str, str]) -> str:
    """Return the key of a request, from the header of any protocol."""
    bearer = headers.get("Authorization", "")
    if bearer[:7].lower() == "bearer ":
        return bearer[7:].strip()
    return headers.get("X-Api-Key") or headers.get("Api-Key") or headers.get("X-Goog-Api-Key") or ""


def error_body(family: Family, status: int, kind: str, message: str, code: str | None = None) -> dict[str, Any]:
    """Return the body of an error response."""
    if family == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": message}}
    if family == "google":
        return {"error": {"code": status, "message": message, "status": _GOOGLE_STATUSES.get(status, "UNAVAILABLE")}}
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def model_list(family: Family, models: Mapping[str, Mapping[str, Any]], owner: str) -> dict[str, Any]:
    """Return the body of a list of models.

    Args:
        family: The provider of the protocol.
        models: Properties of each model, by its name; missing common properties are added.
        owner: The provider of the models.
    """
    if family == "google":
        return {"models": [{"name": f"models/{name}", "supportedGenerationMethods": [*METHODS]} for name in models]}
    if family == "anthropic":
        shape = {"type": "model", "created_at": "1970-01-01T00:00:00Z"}
        listed = [{**shape, "id": name, "display_name": name, **facts} for name, facts in models.items()]
        return {"data": listed, "has_more": False, "first_id": None, "last_id": None}
    common = {"object": "model", "created": 0, "owned_by": owner}
    return {"object": "list", "data": [{**common, "id": name, **facts} for name, facts in models.items()]}
