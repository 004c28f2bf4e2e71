"""Responses in Anthropic's messages protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mleredux_scripted_llm.fragments import Frame, cut, sse
from mleredux_scripted_llm.requests import Answer, Asked

_FINISH = {"tools": "tool_use", "stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}


def whole(answer: Answer, asked: Asked) -> dict[str, Any]:
    """Return the response to a request without streaming."""
    content: list[dict[str, Any]] = [] if answer.text is None else [{"type": "text", "text": answer.text}]
    content += [
        {"type": "tool_use", "id": _id(answer, index), "name": name, "input": _input(arguments)}
        for index, (name, arguments) in enumerate(answer.tools)
    ]
    shell = _shell(answer, asked)
    usage = {**shell["usage"], "output_tokens": answer.completion}
    return {**shell, "content": content, "stop_reason": _FINISH[answer.finish], "usage": usage}


def stream(answer: Answer, asked: Asked) -> Iterator[Frame]:
    """Yield the response in pieces."""

    def event(kind: str, **fields: Any) -> Frame:
        return sse({"type": kind, **fields}, kind)

    yield event("message_start", message=_shell(answer, asked))
    yield event("ping")
    index = 0
    if answer.text is not None:
        yield event("content_block_start", index=index, content_block={"type": "text", "text": ""})
        for piece in cut(answer.text, answer.reply.chunk):
            yield event("content_block_delta", index=index, delta={"type": "text_delta", "text": piece})
        yield event("content_block_stop", index=index)
        index += 1
    for number, (name, arguments) in enumerate(answer.tools):
        block = {"type": "tool_use", "id": _id(answer, number), "name": name, "input": {}}
        yield event("content_block_start", index=index, content_block=block)
        for piece in cut(arguments, answer.reply.chunk):
            yield event("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": piece})
        yield event("content_block_stop", index=index)
        index += 1
    yield event(
        "message_delta",
        delta={"stop_reason": _FINISH[answer.finish], "stop_sequence": None},
        usage={"output_tokens": answer.completion},
    )
    yield event("message_stop")


def _shell(answer: Answer, asked: Asked) -> dict[str, Any]:
    return {
        "id": f"msg_scripted_{answer.number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": answer.prompt - answer.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": answer.cached,
            "output_tokens": 1,
        },
    }


def _id(answer: Answer, index: int) -> str:
    return f"toolu_{answer.number}_{index}"


def _input(arguments: str) -> Any:
    """Reject arguments that are not JSON: this protocol can't represent them without streaming."""
    try:
        return json.loads(arguments)
    except ValueError:
        return {}
