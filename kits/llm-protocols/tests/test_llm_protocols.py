"""Responses survive streams in each protocol, whatever the pieces; hostile bodies are read without an error."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mleredux_llm_protocols import (
    Action,
    Kind,
    Splitter,
    assembler,
    content_of,
    finish_of,
    frames_of,
    reply_turn,
    reported,
    request_turns,
    tools_of,
)

TEXT = "Zwölf\u2028Boxkämpfer \U0001f600\r\n\n[DONE]"
RESPONSES: dict[Kind, dict[str, Any]] = {
    "chat": {
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": TEXT,
                    "tool_calls": [
                        {"id": "c", "type": "function", "function": {"name": "weigh", "arguments": '{"kilos": 3}'}}
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 4},
    },
    "responses": {
        "status": "completed",
        "output": [
            {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": TEXT}]},
            {"id": "f", "type": "function_call", "call_id": "c", "name": "weigh", "arguments": '{"kilos": 3}'},
        ],
        "usage": {"input_tokens": 9, "output_tokens": 4},
    },
    "messages": {
        "content": [
            {"type": "text", "text": TEXT},
            {"type": "tool_use", "id": "c", "name": "weigh", "input": {"kilos": 3}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 9, "output_tokens": 4},
    },
    "generate": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [{"text": TEXT}, {"functionCall": {"id": "c", "name": "weigh", "args": {"kilos": 3}}}],
                },
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4},
    },
}


@pytest.mark.parametrize("network", [1, 7, 1 << 20])
@pytest.mark.parametrize("size", [1, 5, 1000, None])
@pytest.mark.parametrize("kind", get_args(Kind))
def test_a_streamed_response_is_the_whole_response(kind: Kind, size: int | None, network: int) -> None:
    sent = b"".join(frames_of(kind, RESPONSES[kind], size=size))
    whole, splitter = assembler(kind), Splitter()
    for start in range(0, len(sent), network):
        for frame in splitter.feed(sent[start : start + network]):
            whole.feed(content_of(frame) or {})
    assert whole.done and splitter.rest() == b""
    for response in (RESPONSES[kind], whole.response()):
        turn, tokens = reply_turn(kind, response), reported(kind, response)
        assert turn is not None and turn.text == TEXT
        assert turn.actions == (Action("c", "weigh", {"kilos": 3}),)
        assert tokens is not None and (tokens.prompt, tokens.completion) == (9, 4)
    assert finish_of(kind, whole.response()) == finish_of(kind, RESPONSES[kind])


def test_arguments_that_are_no_json_are_streamed_as_they_are() -> None:
    block = {"type": "tool_use", "id": "c", "name": "weigh", "input": "{not json"}
    for size in (3, None):
        whole = assembler("messages")
        for frame in frames_of("messages", {"content": [block], "stop_reason": "tool_use"}, size=size):
            whole.feed(content_of(frame) or {})
        assert whole.response()["content"] == [block]


def test_usage_ends_a_chat_only_on_request() -> None:
    for usage in (True, False):
        frames = list(frames_of("chat", RESPONSES["chat"], usage=usage))
        assert frames[-1] == b"data: [DONE]\n\n"
        assert (b'"prompt_tokens": 9' in frames[-2]) == usage
        assert any(b'"usage"' in frame for frame in frames) == usage


NAMES = st.sampled_from(
    [
        "messages",
        "input",
        "contents",
        "content",
        "parts",
        "role",
        "type",
        "text",
        "tools",
        "choices",
        "message",
        "output",
        "candidates",
        "functionCall",
        "functionResponse",
        "tool_calls",
        "function",
        "name",
        "arguments",
    ]
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["assistant", "model", "tool_use"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=50, deadline=None)
@given(kind=st.sampled_from(get_args(Kind)), body=st.dictionaries(NAMES, ANYTHING, max_size=5))
def test_requests_of_any_form_are_read(kind: Kind, body: dict[str, Any]) -> None:
    assert all(isinstance(turn.text, str) for turn in request_turns(kind, body))
    assert all(isinstance(tool["function"]["name"], str) for tool in tools_of(body))
