"""Generate the page of the HTTP API from the OpenAPI document of a server."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import surface
from mleredux._core.plugins import Catalogue
from mleredux_server.app import create_app, make_service
from mleredux_server.settings import Settings

HEAD = """\
# HTTP API

Generated from the document that every server has at `/openapi.json`; `/docs` shows it interactively. A request carries
a token, `Authorization: Bearer mlr_…`; the routes of health need none. Requests and responses are JSON unless stated
otherwise. [Run a server](../how-to/service.md) explains errors, repeated requests, caching and permissions;
[the Python client](client.md) uses these routes.

```sh no-run: needs a server
curl -fsS -H "Authorization: Bearer $MLEREDUX_TOKEN" -H 'Content-Type: application/json' \\
     -d '{"task": "digits", "agent": "dummy"}' $MLEREDUX_SERVER/v1/runs
```

Every error is a problem document (RFC 9457), `application/problem+json`:
"""


def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    with tempfile.TemporaryDirectory(prefix="mleredux-docs-") as folder:
        service = make_service(Settings(runs_dir=Path(folder) / "runs"), Catalogue())
        found: dict[str, Any] = create_app(service).openapi()
        service.database.close()
    return found


def page() -> str:
    """Return the page: routes by tag, then the documents that they accept and return."""
    content = document()
    schemas = content["components"]["schemas"]
    by_tag: dict[str, list[str]] = {}
    used: set[str] = {"Problem"}
    for path, operations in content["paths"].items():
        for method, operation in operations.items():
            by_tag.setdefault(operation["tags"][0], []).extend(_route(method, path, operation, used))
    lines = [surface.BY, HEAD, *_fields(schemas["Problem"], used)]
    for tag, routes in sorted(by_tag.items()):
        lines += ["", f"## {tag.capitalize()}", *routes]
    lines += ["", "## Documents"]
    shown: set[str] = {"Problem"}
    while waiting := sorted(name for name in used - shown if name in schemas):
        for name in waiting:
            shown.add(name)
            text = _line(schemas[name].get("description", ""))
            lines += ["", f"(http-{name.lower()})=", f"### {name}", "", *([text, ""] if text else [])]
            lines += _fields(schemas[name], used)
    return "\n".join(lines) + "\n"


def _route(method: str, path: str, operation: dict[str, Any], used: set[str]) -> list[str]:
    """Return the lines of a route: its purpose, parameters, body and response."""
    lines = ["", f"### {method.upper()} {path}", "", operation["description"].strip(), ""]
    rows = [
        f"| `{parameter['name']}` | {parameter['in']} | {_type(parameter['schema'], used)} | "
        f"{_required(parameter)} | {_line(parameter.get('description', ''))} |"
        for parameter in operation.get("parameters", ())
    ]
    if rows:
        lines += ["| parameter | in | type | required | |", "|---|---|---|---|---|", *rows, ""]
    for media, body in operation.get("requestBody", {}).get("content", {}).items():
        lines.append(f"Body (`{media}`): {_type(body.get('schema', {}), used)}.")
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            kinds = [f"{_type(body.get('schema', {}), used)} (`{kind}`)" for kind, body in _content(response)]
            lines.append(f"Returns {status}{': ' + ', '.join(kinds) if kinds else ''}.")
    return lines


def _content(response: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return list(response.get("content", {}).items())


def _required(parameter: dict[str, Any]) -> str:
    return "yes" if parameter.get("required") else ""


def _fields(schema: dict[str, Any], used: set[str]) -> list[str]:
    """Return the table of an object's fields."""
    required = schema.get("required", ())
    rows = [
        f"| `{name}` | {_type(field, used)} | {'yes' if name in required else ''} "
        f"| {_line(field.get('description', ''))} |"
        for name, field in schema.get("properties", {}).items()
    ]
    return ["| field | type | required | |", "|---|---|---|---|", *rows] if rows else [f"{_type(schema, used)}."]


def _type(schema: dict[str, Any], used: set[str]) -> str:
    """Return a schema's type in words, with links to documents."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        used.add(name)
        return f"[{name}](#http-{name.lower()})"
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return " or ".join(dict.fromkeys(_type(each, used) for each in schema[choice]))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "any value")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}), used)}"
    return " or ".join(kind) if isinstance(kind, list) else f"{kind}"


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
