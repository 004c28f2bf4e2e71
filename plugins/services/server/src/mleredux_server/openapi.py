"""`/openapi.json`: FastAPI's description of the routes, plus what all of them share: tokens, problems, headers."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

_PUBLIC = ("/healthz", "/readyz", "/metrics", "/v1")
_PROBLEM: dict[str, Any] = {
    "title": "Problem",
    "description": "What went wrong (RFC 9457).",
    "type": "object",
    "required": ["type", "title", "status", "detail", "hint", "instance"],
    "properties": {
        "type": {"type": "string", "description": "`urn:mleredux:problem:` followed by a machine-readable name."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "One sentence on what is wrong."},
        "hint": {"type": ["string", "null"], "description": "What to do."},
        "instance": {"type": ["string", "null"], "description": "The request's id, as in `X-Request-Id`."},
        "errors": {
            "type": "array",
            "description": "The invalid fields, with status 422.",
            "items": {
                "type": "object",
                "required": ["field", "message"],
                "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}
_ANSWER = {
    "description": "A problem",
    "headers": {"X-Request-Id": {"schema": {"type": "string"}}},
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_SECURITY = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token of the service, `mlr_…`. Its scopes: read, run, grade, tokens, admin.",
}


def install(app: FastAPI) -> None:
    """Make the app use this description."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = completed(plain())
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with tokens, and problems as responses, on all routes under `/v1`."""
    parts = document.setdefault("components", {})
    parts.setdefault("securitySchemes", {})["token"] = _SECURITY
    schemas = parts.setdefault("schemas", {})
    schemas["Problem"] = _PROBLEM
    for name in ("HTTPValidationError", "ValidationError"):  # our errors have another format
        schemas.pop(name, None)
    for path, operations in document["paths"].items():
        for operation in operations.values():
            answers = operation["responses"]
            if str(answers.get("422", {})).find("HTTPValidationError") >= 0:
                del answers["422"]
            answers["default"] = _ANSWER
            if path not in _PUBLIC:
                operation["security"] = [{"token": []}]
    return document
