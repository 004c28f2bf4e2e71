"""Requests field by field: what agents send passes, what else a provider may understand does not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux_gateway.screening import screen

sys.path.insert(0, str(Path(__file__).parent))
from mleredux_support.imports import lazily

anthropic = lazily("anthropic")
openai = lazily("openai")

DATA = "data:image/png;base64,AAAA"
LINKS = [
    "https://example.org/?leak", "HTTP://example.org", " https://example.org", "\thttp://a", "//example.org", "ftp://a",
    "file:///etc/passwd", "gs://a/b", "s3://a/b", "example.org/a.png", "data:text/html,x", "data:image/svg+xml,<svg/>",
    "Data:image/png;base64,AAAA", "blob:x", "",
]  # fmt: skip


def chat(content: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": content}], **more}


def asked(content: Any = "x", **more: Any) -> dict[str, Any]:
    return {"model": "m", "input": [{"role": "user", "content": content}], **more}


def refused(kind: Any, body: dict[str, Any], *granted: str) -> list[str]:
    return [refusal.field for refusal in screen(kind, body, {"mine"}.__contains__, granted).refusals]


FUNCTION = {"name": "f", "description": "See https://example.org", "parameters": {"type": "object", "properties": {}}}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"a": {"$ref": "#/$defs/b"}},
}
CACHE = {"type": "ephemeral"}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"url": "https://example.org"}'}}
# What a client of OpenAI makes of an assistant's message when it sends it back.
ECHO = {
    "role": "assistant", "content": None, "refusal": None, "audio": None, "annotations": [], "function_call": None,
    "tool_calls": [CALL], "provider_specific_fields": {"refusal": None, "reasoning": "hm"},
}  # fmt: skip
AIDE = chat(
    "x", temperature=0.5, tools=[{"type": "function", "function": FUNCTION}],
    tool_choice={"type": "function", "function": {"name": "f"}},
)  # fmt: skip
OPENHANDS = {
    "model": "m",
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "x", "cache_control": CACHE}]},
        {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": DATA}}]},
        {**ECHO, "reasoning_content": "hm", "thinking_blocks": [{"type": "thinking", "thinking": "h"}]},
        {"role": "tool", "tool_call_id": "1", "name": "f", "content": [{"type": "text", "text": "done"}]},
    ],
    "tools": [{"type": "function", "function": {**FUNCTION, "strict": False}, "cache_control": CACHE}],
    "temperature": 0.0, "top_p": 1.0, "max_completion_tokens": 4096, "reasoning_effort": "high", "seed": 3,
    "stop": ["a"],
    "drop_params": None, "stream": True, "stream_options": {"include_usage": True}, "parallel_tool_calls": False,
}  # fmt: skip
CODEX = {
    "model": "m", "instructions": "You code.", "stream": True, "store": False, "parallel_tool_calls": False,
    "tool_choice": "auto", "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k",
    "reasoning": {"effort": "medium", "summary": "auto"}, "text": {"verbosity": "low"}, "client_metadata": {"a": "b"},
    "tools": [
        {"type": "function", "strict": False, **FUNCTION},
        {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
        {"type": "local_shell"}, {"type": "shell", "environment": {"type": "local"}},
        {"type": "namespace", "name": "n", "description": "d", "tools": [{"type": "function", **FUNCTION}]},
    ],
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "see https://example.org"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": DATA, "detail": "high"}]},
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "h"}], "encrypted_content": "e"},
        {
            "type": "message", "id": "msg", "role": "assistant", "status": "completed", "phase": "commentary",
            "content": [{"type": "output_text", "text": "x", "annotations": [], "logprobs": []}],
        },
        {"type": "function_call", "call_id": "1", "id": "fc", "name": "f", "arguments": '{"url": "https://x"}'},
        {"type": "function_call_output", "call_id": "1", "output": "https://example.org"},
        {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_image", "image_url": DATA}]},
        {"type": "custom_tool_call", "call_id": "2", "name": "apply_patch", "input": "*** Begin Patch"},
        {"type": "custom_tool_call_output", "call_id": "2", "output": "Done"},
        {"type": "local_shell_call", "id": "l", "call_id": "3", "status": "completed", "action": {"type": "exec"}},
        {"role": "user", "content": "plain"},
    ],
}  # fmt: skip
CLAUDE_CODE = {
    "model": "m", "max_tokens": 32_000, "stream": True, "temperature": 1, "metadata": {"user_id": "user_1"},
    "system": [{"type": "text", "text": "You code.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    "thinking": {"type": "enabled", "budget_tokens": 31_999}, "output_config": {"effort": "high"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "tools": [
        {"name": "Bash", "description": "x", "input_schema": SCHEMA},
        {"name": "WebFetch", "description": "x", "input_schema": {}, "cache_control": CACHE},
        {"type": "bash_20250124", "name": "bash"}, {"type": "text_editor_20250728", "name": "edit"},
        {"type": "memory_20250818", "name": "memory"},
    ],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "see https://example.org", "cache_control": CACHE}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "d"},
                {"type": "text", "text": "x", "citations": None},
                {"type": "tool_use", "id": "1", "name": "f", "input": {"url": "https://example.org", "type": "mcp"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result", "tool_use_id": "1", "is_error": False, "cache_control": CACHE,
                    "content": [
                        {"type": "text", "text": "x"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                    ],
                },
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
            ],
        },
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("chat", chat("see https://example.org")),
        ("chat", chat([{"type": "text", "text": "image_url: https://example.org"}])),
        ("chat", chat("x", response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}})),
        ("chat", chat("x", functions=[FUNCTION], function_call="auto", n=2, logit_bias={"1": 2}, service_tier="flex")),
        ("chat", chat("x", store=False, modalities=["text"], metadata=None, audio=None, web_search_options=None)),
        ("chat", AIDE),
        ("chat", OPENHANDS),
        ("responses", {"model": "m", "input": "hello", "previous_response_id": "mine", "store": True}),
        ("responses", asked(background=False, service_tier="auto", truncation="auto")),
        ("responses", {"model": "m", "input": [{"type": "item_reference", "id": "mine"}, {"id": "mine"}]}),
        ("responses", CODEX),
        ("messages", chat("x", max_tokens=9, tools=[{"name": "web_search", "input_schema": {}}])),
        ("messages", chat("x", system="Be.", stop_sequences=["a"], thinking={"type": "adaptive"}, speed="standard")),
        ("messages", CLAUDE_CODE),
    ],
)
def test_what_agents_send_passes(kind, body):
    assert refused(kind, body) == []


def test_a_model_must_be_named():
    for body in ({"messages": []}, {"model": None}, {"model": ""}, {"model": ["m"]}):
        assert "model" in refused("chat", body)


def test_data_of_images_is_told_apart_from_text():
    found = screen("messages", CLAUDE_CODE, bool)
    assert (found.images, found.image_characters) == (1, 4)
    assert screen("chat", OPENHANDS, bool).images == 1 and screen("responses", CODEX, bool).images == 2


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(
    ("kind", "make", "field"),
    [
        ("chat", lambda u: chat([{"type": "image_url", "image_url": {"url": u}}]), "messages.content.image_url.url"),
        ("chat", lambda u: chat([{"type": "image_url", "image_url": u}]), "messages.content.image_url"),
        ("chat", lambda u: chat([{"type": "text", "text": "x", "image_url": {"url": u}}]),
         "messages.content.image_url"),
        ("chat", lambda u: chat([{"type": "video_url", "video_url": {"url": u}}]), "messages.content.video_url"),
        ("chat", lambda u: chat([{"type": "audio_url", "audio_url": {"url": u}}]), "messages.content.audio_url"),
        ("chat", lambda u: chat([{"image_url": {"url": u}}]), "messages.content.image_url"),
        ("chat", lambda u: chat([{"type": "file", "file": {"file_data": u}}]), "messages.content.file"),
        ("messages", lambda u: chat([{"type": "image", "source": {"type": "url", "url": u}}]),
         "messages.content.source.url"),
        (
            "messages",
            lambda u: chat([{"type": "tool_result", "content": [{"type": "image", "source": {"url": u}}]}]),
            "messages.content.content.source.url",
        ),
        ("messages", lambda u: chat("x", system=[{"type": "image", "source": {"type": "url", "url": u}}]),
         "system.image"),
        ("responses", lambda u: asked([{"type": "input_image", "image_url": u}]), "input.content.image_url"),
        ("responses", lambda u: asked([{"type": "input_file", "file_url": u}]), "input.content.input_file"),
        (
            "responses",
            lambda u: {
                "model": "m",
                "input": [{"type": "function_call_output", "output": [{"type": "input_image", "image_url": u}]}],
            },
            "input.output.image_url",
        ),
    ],
)  # fmt: skip
@pytest.mark.attack
def test_links_in_content_are_refused(kind, make, field, link):
    assert refused(kind, make(link)) == [field]


@pytest.mark.parametrize(
    ("kind", "body", "field"),
    [
        ("chat", chat("x", web_search_options={}), "web_search_options"),
        ("chat", chat("x", plugins=[{"id": "web"}]), "plugins"),
        ("chat", chat("x", models=["a", "b"], route="fallback"), "models"),
        ("chat", chat("x", fallbacks=["a"]), "fallbacks"),
        ("chat", chat("x", search_parameters={"mode": "on"}), "search_parameters"),
        ("chat", chat("x", extra_body={"google": {"tools": [{"google_search": {}}]}}), "extra_body"),
        ("chat", chat("x", tools=[{"google_search": {}}]), "tools.google_search"),
        ("chat", chat("x", tools=[{"type": "google_search"}]), "tools.google_search"),
        ("chat", chat("x", tools=[{"type": "function", "function": {**FUNCTION, "server_url": "x"}}]),
         "tools.function.server_url"),
        ("chat", chat("x", api_base="https://example.org"), "api_base"),
        ("chat", chat("x", base_url="https://example.org"), "base_url"),
        ("chat", chat("x", api_key="x"), "api_key"),
        ("chat", chat("x", provider={"order": ["a"]}), "provider"),
        ("chat", chat("x", preset="a"), "preset"),
        ("chat", chat("x", transforms=["a"]), "transforms"),
        ("chat", chat("x", metadata={"a": "b"}), "metadata"),
        ("chat", chat("x", store=True), "store"),
        ("chat", chat("x", best_of=5), "best_of"),
        ("chat", chat("x", prediction={"type": "content", "content": "x"}), "prediction"),
        ("chat", chat("x", modalities=["text", "audio"]), "modalities"),
        ("chat", chat("x", audio={"voice": "a"}), "audio"),
        ("chat", chat([{"type": "input_audio", "input_audio": {"data": "AAAA"}}]), "messages.content.input_audio"),
        ("chat", chat([{"type": "file", "file": {"file_id": "file-1"}}]), "messages.content.file"),
        ("chat", chat("x", service_tier="priority"), "service_tier"),
        ("chat", chat("x", response_format={"type": "json_schema", "json_schema": {"schema": {"$ref": "http://a"}}}),
         "response_format.json_schema.schema"),
        *(
            ("chat", chat("x", response_format={"type": "json_schema", "json_schema": {"schema": schema}}),
             "response_format.json_schema.schema")
            for schema in (
                {"$id": "https://example.org/a.json", "type": "object"},
                {"properties": {"a": {"$id": "//example.org/a"}}},
                {"properties": {"a": {"id": "http://127.0.0.1/a.json", "$ref": "#/definitions/a"}}},
                '{"$ref": "http://127.0.0.1/a.json"}',
                {"$schema": "https://example.org/dialect"},
                {"$schema": "https://json-schema.org.example.org/draft/2020-12/schema"},
                {"allOf": [{"$schema": "http://127.0.0.1/schema#"}]},
            )
        ),
        ("chat", {**chat("x"), "messages": "x"}, "messages"),
        ("chat", {**chat("x"), "messages": [1]}, "messages"),
        ("chat", chat("x", **{"see https://example.org and more": 1}), "?"),
        ("messages", chat("x", speed="fast"), "speed"),
        ("messages", chat("x", mcp_servers=[{"url": "https://example.org"}]), "mcp_servers"),
        ("messages", chat("x", container="c"), "container"),
        ("messages", chat("x", inference_geo="us"), "inference_geo"),
        ("messages", chat("x", fallbacks=[{"model": "a"}]), "fallbacks"),
        ("messages", chat("x", context_management={"edits": [{"type": "compact_20260112"}]}),
         "context_management.edits.compact_20260112"),
        ("messages", chat("x", tools=[{"type": "web_search_20250305", "name": "w"}]), "tools.web_search_20250305"),
        ("messages", chat("x", tools=[{"type": "web_fetch_20250910", "name": "w"}]), "tools.web_fetch_20250910"),
        ("messages", chat("x", tools=[{"type": "code_execution_20250825", "name": "w"}]),
         "tools.code_execution_20250825"),
        ("messages", chat("x", tools=[{"type": "bash_code_execution_20250825", "name": "w"}]),
         "tools.bash_code_execution_20250825"),
        ("messages", chat("x", tools=[{"type": "computer_20250124", "name": "w"}]), "tools.computer_20250124"),
        ("messages", chat("x", tools=[{"type": "mcp_toolset", "mcp_server_name": "w"}]), "tools.mcp_toolset"),
        ("messages", chat([{"type": "document", "source": {"type": "file", "file_id": "f"}}]),
         "messages.content.source.file"),
        ("messages", chat([{"type": "document", "source": {"type": "base64", "data": "A"}}]),
         "messages.content.source.base64"),
        ("messages", chat([{"type": "container_upload", "file_id": "f"}]), "messages.content.container_upload"),
        ("messages", chat("x", metadata={"user_id": "a", "other": "b"}), "metadata.other"),
        ("responses", asked(background=True), "background"),
        ("responses", asked(conversation="conv_1"), "conversation"),
        ("responses", asked(prompt={"id": "pmpt_1"}), "prompt"),
        ("responses", asked(previous_response_id="another's"), "previous_response_id"),
        ("responses", {"model": "m", "input": [{"type": "item_reference", "id": "another's"}]}, "input.id"),
        ("responses", {"model": "m", "input": [{"id": "another's"}]}, "input.id"),
        ("responses", {"model": "m", "input": [{"type": "reasoning", "id": "another's", "summary": []}]}, "input.id"),
        ("responses", asked(reasoning={"effort": "high", "mode": "pro"}), "reasoning.mode"),
        ("responses", asked(context_management=[{"type": "compaction"}]), "context_management"),
        ("responses", asked([{"type": "input_image", "file_id": "f"}]), "input.content.file_id"),
        ("responses", asked(tools=[{"type": "web_search"}]), "tools.web_search"),
        ("responses", asked(tools=[{"type": "file_search", "vector_store_ids": ["a"]}]), "tools.file_search"),
        ("responses", asked(tools=[{"type": "mcp", "server_url": "https://x"}]), "tools.mcp"),
        ("responses", asked(tools=[{"type": "code_interpreter"}]), "tools.code_interpreter"),
        ("responses", asked(tools=[{"type": "computer_use_preview"}]), "tools.computer_use_preview"),
        ("responses", asked(tools=[{"type": "image_generation"}]), "tools.image_generation"),
        ("responses", asked(tools=[{"type": "shell"}]), "tools.environment"),
        ("responses", asked(tools=[{"type": "shell", "environment": {"type": "container_auto"}}]),
         "tools.environment.container_auto"),
        ("responses", asked(tools=[{"type": "tool_search", "execution": "server"}]), "tools.execution"),
        ("responses", {"model": "m", "input": [{"type": "additional_tools", "tools": [{"type": "mcp"}]}]},
         "input.tools.mcp"),
        ("responses", {"model": "m", "input": [{"type": "mcp_approval_response", "approve": True}]},
         "input.mcp_approval_response"),
    ],
)  # fmt: skip
@pytest.mark.attack
def test_what_reaches_further_is_refused_unless_granted(kind, body, field):
    assert refused(kind, body)[0] == field
    assert field not in refused(kind, body, field)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["messages", "input", "tools", "n", "max_tokens", "system", "thinking", "text", "content", "type"]
)


@given(kind=st.sampled_from(["chat", "responses", "messages"]), body=st.dictionaries(NAMES | st.text(max_size=9), JSON))
@pytest.mark.attack
def test_any_json_is_judged(kind, body):
    """A name that is not listed is always refused, whatever else a body contains."""
    assert refused(kind, {"model": "m", "unheard_of": 1, **body})


INVISIBLE = st.text(
    st.characters(categories=["Z", "C"]) | st.sampled_from("\u034f\u115f\u17b4\u180b\u2800\u3164\ufe0f\uffa0")
)
BLANK = st.sampled_from([None, False, 0, [], {}, [None], [[None]], [{}], {"env": None}]) | INVISIBLE
ITEMS = {
    "message": ["role", "content", "phase"],
    "reasoning": ["encrypted_content", "summary", "content"],
    "function_call": ["call_id", "name", "arguments"],
    "function_call_output": ["call_id", "output"],
    "custom_tool_call": ["call_id", "input"],
    "local_shell_call": ["call_id", "action"],
    "shell_call_output": ["output", "max_output_length"],
    "apply_patch_call": ["operation"],
    "tool_search_output": ["tools", "execution"],
    "item_reference": [],
}


@given(data=st.data(), named=st.sampled_from([*ITEMS, None]), identity=st.sampled_from(["another's", " mine", "MINE"]))
@pytest.mark.attack
def test_an_item_that_states_nothing_else_is_one_that_the_run_received(data, named, identity):
    """Null, blank and empty values hide no reference to what another run received."""
    fields = ITEMS[named or "message"]
    blank = (
        {name: data.draw(BLANK) for name in data.draw(st.lists(st.sampled_from(fields), unique=True))} if fields else {}
    )
    kind = {"type": named} if named or data.draw(st.booleans()) else {}
    item = dict(data.draw(st.permutations([*blank.items(), *kind.items(), ("id", identity), ("status", None)])))
    assert "input.id" in refused("responses", {"model": "m", "input": [item]})
    granted = refused("responses", {"model": "m", "input": [{**item, "id": "mine"}]})
    assert "input.id" not in granted


def nulls(value: Any) -> Any:
    """Add null fields and items everywhere."""
    if isinstance(value, dict):
        return {"none": None, **{name: nulls(part) for name, part in value.items()}, "id": value.get("id")}
    return [None, *map(nulls, value), None] if isinstance(value, list) else value


@given(role=st.sampled_from(["user", "assistant"]), texts=st.lists(st.text(), max_size=3), wide=st.booleans())
@pytest.mark.attack
def test_a_request_with_nulls_is_the_request_without_them(role, texts, wide):
    parts = [{"type": "input_text", "text": text} for text in texts]
    plain = {"model": "m", "input": [{"role": role, "content": parts}], "stop": None} if wide else {"model": "m"}
    body = nulls(plain)
    found = screen("responses", body, {"mine"}.__contains__)
    assert not found.refusals and found.nulls
    assert body == {name: part for name, part in plain.items() if part is not None}


def test_nulls_of_a_model_s_own_json_are_kept(opened, upstream):
    function = {**FUNCTION, "strict": None, "parameters": {"default": None}}
    opened().say(tools=[{"type": "function", "function": function}], stop=None)
    sent = upstream.calls[-1].body
    assert "stop" not in sent and "strict" not in sent["tools"][0]["function"]
    assert sent["tools"][0]["function"]["parameters"] == {"default": None}
