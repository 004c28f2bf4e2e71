"""What agents may not request from a provider: anything that would reach the network, or another run, for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mleredux_gateway.usage import Kind

_OWN_TOOLS = re.compile(
    r"(function|custom|bash|text_editor|computer|memory|local_shell|apply_patch|tool_search)(_\w+)?$"
)
"""Tools that run on the agent's side, or that only use the content of the request."""
_REMOTE = re.compile(r"(?i)https?:|ftp:|gs:|s3:")
_TIERS = (None, "auto", "default", "flex", "standard_only")
_SEARCHING = re.compile(r"-search-|-search$|search-preview|search-api|deep-research")
_MAX_DEPTH = 40


def objection(kind: Kind, body: dict[str, Any], known_responses: set[str], *, hosted_tools: bool) -> str | None:
    """Return one sentence on what is not offered, None if the request is allowed.

    Args:
        kind: The protocol.
        body: The request.
        known_responses: Ids of responses that this run received.
        hosted_tools: Whether the upstream's own tools and remote files are allowed.
    """
    if not isinstance(body.get("model"), str) or not body["model"]:
        return "Name a model."
    if body.get("service_tier") not in _TIERS:
        return f"The gateway does not offer service tier {body['service_tier']!r}."
    if body.get("speed") not in (None, "standard"):
        return f"The gateway does not offer speed {body['speed']!r}."
    if kind == "responses":
        if body.get("background"):
            return "The gateway does not offer background responses: they can't be counted."
        if body.get("conversation"):
            return "The gateway does not offer stored conversations; send the messages."
        earlier = body.get("previous_response_id")
        if earlier and earlier not in known_responses:
            return "This run received no response with that id."
    if hosted_tools:
        return None
    if body.get("web_search_options") or _SEARCHING.search(body["model"]):
        return "The gateway does not offer web search."
    for name in ("mcp_servers", "container"):
        if body.get(name):
            return f"The gateway does not offer {name}."
    for tool in body.get("tools") or ():
        type_ = tool.get("type") if isinstance(tool, dict) else None
        local = type_ == "shell" and (tool.get("environment") or {}).get("type") == "local"
        if type_ is not None and not local and not _OWN_TOOLS.match(str(type_)):
            return f"The gateway does not offer the provider's tool {type_!r}."
    place = "input" if kind == "responses" else "messages"
    for remote in _remote_parts(body.get(place), 0):
        return f"The gateway does not offer remote files ({remote}); send the content."
    return None


def _remote_parts(value: Any, depth: int) -> Iterator[str]:
    """Yield names of parts that the provider would fetch, or find in its own store."""
    if depth > _MAX_DEPTH:
        yield "nested too deeply"
    elif isinstance(value, list):
        for item in value:
            yield from _remote_parts(item, depth + 1)
    elif isinstance(value, dict):
        kind = value.get("type")
        for name in ("image_url", "file_url", "url"):
            found = value.get(name)
            link = found.get("url") if isinstance(found, dict) else found
            if isinstance(link, str) and _REMOTE.match(link) and kind not in ("tool_use", "function_call", "text"):
                yield name
        if isinstance(value.get("file_id"), str) and kind != "tool_use":
            yield "file_id"
        for name in ("content", "output", "source", "file"):
            if kind != "tool_use":
                yield from _remote_parts(value.get(name), depth + 1)
