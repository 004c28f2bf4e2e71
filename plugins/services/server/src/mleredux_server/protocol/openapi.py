"""`/openapi.json`: FastAPI's description of the routes, plus their common parts: tokens, problems, headers."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse

from mleredux_server.protocol.idempotency import HEADER

_PUBLIC = ("/healthz", "/readyz", "/metrics", "/v1")
_PARTS = json.loads(Path(__file__).with_name("openapi.json").read_text(encoding="utf-8"))
"""Parts that the routes share: the schema `problem`, the responses `answer` (any problem) and `limited`, and
`security`.
"""
_REPEATABLE = (
    *(f"/v1/{name}" for name in ("users", "tokens", "projects", "runs", "experiments", "builds", "submissions")),
    "/v1/runs/{run_id}/retry",
    "/v1/experiments/{experiment_id}/extend",
)
_DOCS = "/docs/static"
_POLICY = (
    "default-src 'none'; script-src 'self' {}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def install(app: FastAPI) -> None:
    """Make the app serve this description."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = completed(plain())
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]

    @app.get("/docs", include_in_schema=False)
    def docs(request: Request) -> HTMLResponse:
        """Return a page that shows the description; its policy allows its own script by hash, and no other host."""
        root = request.scope.get("root_path", "")
        page = get_swagger_ui_html(
            openapi_url=f"{root}/openapi.json",
            title=app.title,
            swagger_js_url=f"{root}{_DOCS}/swagger-ui-bundle.js",
            swagger_css_url=f"{root}{_DOCS}/swagger-ui.css",
            swagger_favicon_url=f"{root}{_DOCS}/favicon.png",
        )
        scripts = re.findall(rb"<script>(.*?)</script>", bytes(page.body), re.DOTALL)
        hashes = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in scripts]
        page.headers["Content-Security-Policy"] = _POLICY.format(" ".join(f"'sha256-{digest}'" for digest in hashes))
        return page


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with tokens, and problems as responses, on all routes under `/v1`."""
    parts = document.setdefault("components", {})
    parts.setdefault("securitySchemes", {})["token"] = _PARTS["security"]
    schemas = parts.setdefault("schemas", {})
    schemas["Problem"] = _PARTS["problem"]
    for name in ("HTTPValidationError", "ValidationError"):  # our errors have another format
        schemas.pop(name, None)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            answers = operation["responses"]
            headers = []
            if method in ("patch", "put", "delete") or (method == "post" and "{" in path):
                headers.append(_header("If-Match", "The ETag that the resource must still have; else 412.", {}))
            if method == "post" and path in _REPEATABLE:
                headers.append(
                    _header(HEADER, "A request with the same key gets the same response.", {"maxLength": 255})
                )
            if headers:
                operation["parameters"] = [*operation.get("parameters", ()), *headers]
            if str(answers.get("422", {})).find("HTTPValidationError") >= 0:
                del answers["422"]
            answers["default"] = _PARTS["answer"]
            if path not in _PUBLIC:
                operation["security"] = [{"token": []}]
                answers["429"] = _PARTS["limited"]
    return document


def _header(name: str, description: str, more: dict[str, int]) -> dict[str, Any]:
    schema = {"type": "string", **more}
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}
