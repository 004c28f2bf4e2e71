"""Requests by which the provider would reach the network, or another run, for an agent without network."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from mleredux_gateway.screening import objection

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def chat(content: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": content}], **more}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("chat", chat("hello")),
        ("chat", chat([IMAGE])),
        ("chat", chat("see https://example.org")),
        ("chat", chat([{"type": "text", "text": "see https://example.org"}])),
        ("chat", chat("x", tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}])),
        ("messages", chat("x", tools=[{"name": "web_search", "input_schema": {}}])),
        ("messages", chat("x", tools=[{"type": "bash_20250124", "name": "bash"}])),
        ("messages", chat("x", tools=[{"type": "text_editor_20250728", "name": "edit"}])),
        ("messages", chat([{"type": "tool_use", "id": "1", "name": "f", "input": {"url": "https://example.org"}}])),
        ("responses", {"model": "m", "input": "hello", "tools": [{"type": "custom", "name": "f"}]}),
        ("responses", {"model": "m", "input": "hello", "previous_response_id": "mine"}),
        ("responses", {"model": "m", "input": "x", "tools": [{"type": "shell", "environment": {"type": "local"}}]}),
        ("responses", {"model": "m", "input": [{"type": "function_call", "name": "f", "arguments": "https://x"}]}),
    ],
)
def test_requests_without_network_access_are_allowed(kind, body):
    assert objection(kind, body, {"mine"}, hosted_tools=False) is None


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        ("chat", {"messages": []}, "Name a model"),
        ("chat", chat("x", web_search_options={}) | {"web_search_options": {"a": 1}}, "web search"),
        ("chat", {**chat("x"), "model": "gpt-4o-search-preview"}, "web search"),
        ("chat", chat([{"type": "image_url", "image_url": {"url": "https://example.org/?leak"}}]), "image_url"),
        ("chat", chat([{"type": "image_url", "image_url": "HTTP://example.org"}]), "image_url"),
        ("chat", chat([{"type": "file", "file": {"file_id": "file-1"}}]), "file_id"),
        ("messages", chat([{"type": "document", "source": {"type": "file", "file_id": "file-1"}}]), "file_id"),
        ("messages", chat("x", speed="fast"), "speed"),
        ("responses", {"model": "m", "input": "x", "tools": [{"type": "shell"}]}, "shell"),
        ("chat", chat("x", service_tier="priority"), "service tier"),
        ("messages", chat("x", tools=[{"type": "web_search_20250305", "name": "web_search"}]), "web_search_20250305"),
        ("messages", chat("x", tools=[{"type": "web_fetch_20250910", "name": "f"}]), "web_fetch"),
        ("messages", chat("x", tools=[{"type": "code_execution_20250825", "name": "f"}]), "code_execution"),
        ("messages", chat("x", mcp_servers=[{"url": "https://example.org"}]), "mcp_servers"),
        (
            "messages",
            chat([{"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}}]),
            "remote files",
        ),
        (
            "messages",
            chat([{"type": "tool_result", "content": [{"type": "image", "source": {"url": "https://example.org"}}]}]),
            "remote files",
        ),
        ("responses", {"model": "m", "input": "x", "background": True}, "background"),
        ("responses", {"model": "m", "input": "x", "previous_response_id": "another's"}, "no response with that id"),
        ("responses", {"model": "m", "input": "x", "conversation": "conv_1"}, "conversations"),
        ("responses", {"model": "m", "input": "x", "tools": [{"type": "web_search"}]}, "web_search"),
        ("responses", {"model": "m", "input": "x", "tools": [{"type": "mcp", "server_url": "https://x"}]}, "mcp"),
        ("responses", {"model": "m", "input": "x", "tools": [{"type": "code_interpreter"}]}, "code_interpreter"),
        (
            "responses",
            {"model": "m", "input": [{"role": "user", "content": [{"type": "input_file", "file_url": "https://x"}]}]},
            "file_url",
        ),
        (
            "responses",
            {"model": "m", "input": [{"role": "user", "content": [{"type": "input_image", "image_url": "https://x"}]}]},
            "image_url",
        ),
    ],
)
def test_requests_with_network_access_are_refused(kind, body, told):
    said = objection(kind, body, {"mine"}, hosted_tools=False)
    assert said is not None and told in said


def test_a_refusal_is_reported_counted_and_recorded_but_never_forwarded(opened, upstream):
    agent, before = opened(), len(upstream.calls)
    with pytest.raises(openai.BadRequestError, match="does not offer the provider's tool 'web_search'"):
        agent.ai.responses.create(model="priced", input="x", tools=[{"type": "web_search"}])
    use = agent.close()
    assert (use.calls, use.refused) == (0, 1)
    assert agent.calls()[0]["refused"] == "not_offered"
    assert len(upstream.calls) == before


def test_hosted_tools_can_be_allowed():
    body = {"model": "m", "input": "x", "tools": [{"type": "web_search"}]}
    assert objection("responses", body, set(), hosted_tools=True) is None
    assert objection("responses", {**body, "previous_response_id": "a"}, set(), hosted_tools=True) is not None
