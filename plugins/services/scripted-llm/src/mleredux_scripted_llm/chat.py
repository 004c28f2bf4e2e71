"""Responses in OpenAI's chat completions protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mleredux_scripted_llm.fragments import CREATED, Frame, cut, sse
from mleredux_scripted_llm.requests import Answer, Asked

_FINISH = {"tools": "tool_calls"}


def whole(answer: Answer, asked: Asked) -> dict[str, Any]:
    """Return the response to a request without streaming."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    if _legacy(asked) and answer.tools:
        message["function_call"] = {"name": answer.tools[0][0], "arguments": answer.tools[0][1]}
    elif answer.tools:
        message["tool_calls"] = [_call(answer, index) for index in range(len(answer.tools))]
    choices = [
        {"index": index, "message": message, "logprobs": None, "finish_reason": _finish(answer, asked)}
        for index in range(asked.body.get("n") or 1)
    ]
    return {**_head(answer, asked, "chat.completion"), "choices": choices, "usage": _usage(answer)}


def stream(answer: Answer, asked: Asked) -> Iterator[Frame]:
    """Yield the response in pieces."""
    head = _head(answer, asked, "chat.completion.chunk")
    with_usage = bool((asked.body.get("stream_options") or {}).get("include_usage"))

    def chunk(delta: dict[str, Any], finish: str | None = None) -> Frame:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse({**head, "choices": [choice], **({"usage": None} if with_usage else {})})

    yield chunk({"role": "assistant", "content": "" if answer.text is not None else None})
    for piece in cut(answer.text or "", answer.reply.chunk):
        yield chunk({"content": piece})
    for index, (name, arguments) in enumerate(answer.tools):
        if _legacy(asked):
            yield chunk({"function_call": {"name": name, "arguments": arguments}})
            break
        call = _call(answer, index)
        yield chunk({"tool_calls": [{"index": index, **call, "function": {"name": name, "arguments": ""}}]})
        for piece in cut(arguments, answer.reply.chunk):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish(answer, asked))
    if with_usage:
        yield sse({**head, "choices": [], "usage": _usage(answer)})
    yield b"data: [DONE]\n\n"


def _head(answer: Answer, asked: Asked, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-scripted-{answer.number}",
        "object": kind,
        "created": CREATED + answer.number,
        "model": asked.model,
        "system_fingerprint": "scripted",
    }


def _call(answer: Answer, index: int) -> dict[str, Any]:
    name, arguments = answer.tools[index]
    identity = f"call_{answer.number}_{index}"
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def _finish(answer: Answer, asked: Asked) -> str:
    if answer.finish == "tools" and _legacy(asked):
        return "function_call"
    return _FINISH.get(answer.finish, answer.finish)


def _legacy(asked: Asked) -> bool:
    """Return whether functions are offered in the format that preceded tools."""
    return bool(asked.body.get("functions")) and not asked.body.get("tools")


def _usage(answer: Answer) -> dict[str, Any]:
    return {
        "prompt_tokens": answer.prompt,
        "completion_tokens": answer.completion,
        "total_tokens": answer.prompt + answer.completion,
        "prompt_tokens_details": {"cached_tokens": answer.cached},
        "completion_tokens_details": {"reasoning_tokens": answer.reasoning},
    }
