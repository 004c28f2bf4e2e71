"""Replies of a scenario as responses, in each protocol."""

from __future__ import annotations

import json
from typing import Any

from mleredux_llm_protocols.turns import FINISHES

from mleredux_scripted_llm.requests import Answer, Asked

_CREATED = 1_700_000_000
"""Unix time of a conversation's first reply, fixed so that replies are reproducible."""


def identity(answer: Answer) -> str:
    """Return the id of a response, which a later request can continue from."""
    return f"resp_scripted_{answer.number}"


def response_of(answer: Answer, asked: Asked) -> dict[str, Any]:
    """Return the non-streaming response to a request."""
    build = {"chat": _chat, "responses": _responses, "messages": _messages, "generate": _generate}[asked.kind]
    return build(answer, asked)


def _chat(answer: Answer, asked: Asked) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    finish = FINISHES["chat"][answer.finish]
    functions = [{"name": name, "arguments": arguments} for name, arguments in answer.tools]
    if functions and asked.body.get("functions") and not asked.body.get("tools"):  # the format that preceded tools
        message["function_call"] = functions[0]
        finish = "function_call" if answer.finish == "tools" else finish
    elif functions:
        message["tool_calls"] = [
            {"id": _call_id(answer, index), "type": "function", "function": function}
            for index, function in enumerate(functions)
        ]
    choices = [
        {"index": index, "message": message, "logprobs": None, "finish_reason": finish}
        for index in range(1 if asked.stream else asked.body.get("n") or 1)
    ]
    return {
        "id": f"chatcmpl-scripted-{answer.number}",
        "object": "chat.completion",
        "created": _CREATED + answer.number,
        "model": asked.model,
        "system_fingerprint": "scripted",
        "choices": choices,
        "usage": {
            "prompt_tokens": answer.prompt,
            "completion_tokens": answer.completion,
            "total_tokens": answer.prompt + answer.completion,
            "prompt_tokens_details": {"cached_tokens": answer.cached},
            "completion_tokens_details": {"reasoning_tokens": answer.reasoning},
        },
    }


def _responses(answer: Answer, asked: Asked) -> dict[str, Any]:
    reason, body = FINISHES["responses"].get(answer.finish), asked.body
    parts: list[dict[str, Any]] = [{"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}]
    message = {"id": f"msg_{answer.number}", "type": "message", "role": "assistant", "status": "completed"}
    calls = [
        {
            "id": f"fc_{answer.number}_{index}",
            "type": "function_call",
            "call_id": _call_id(answer, index),
            "name": name,
            "arguments": arguments,
            "status": "completed",
        }
        for index, (name, arguments) in enumerate(answer.tools)
    ]
    return {
        "id": identity(answer),
        "object": "response",
        "created_at": _CREATED + answer.number,
        "status": "incomplete" if reason else "completed",
        "background": False,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": asked.model,
        "output": [*([] if answer.text is None else [{**message, "content": parts}]), *calls],
        "parallel_tool_calls": True,
        "reasoning": {"effort": None, "summary": None},
        "truncation": "disabled",
        **{name: body.get(name) for name in ("instructions", "max_output_tokens", "previous_response_id")},
        **{name: body.get(name, 1.0) for name in ("temperature", "top_p")},
        "metadata": body.get("metadata") or {},
        "store": bool(body.get("store", True)),
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "usage": {
            "input_tokens": answer.prompt,
            "input_tokens_details": {"cached_tokens": answer.cached},
            "output_tokens": answer.completion,
            "output_tokens_details": {"reasoning_tokens": answer.reasoning},
            "total_tokens": answer.prompt + answer.completion,
        },
    }


def _messages(answer: Answer, asked: Asked) -> dict[str, Any]:
    content: list[dict[str, Any]] = [] if answer.text is None else [{"type": "text", "text": answer.text}]
    content += [
        {
            "type": "tool_use",
            "id": f"toolu_{answer.number}_{index}",
            "name": name,
            "input": arguments if asked.stream else _parsed(arguments),  # only streams can contain arbitrary text
        }
        for index, (name, arguments) in enumerate(answer.tools)
    ]
    return {
        "id": f"msg_scripted_{answer.number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": FINISHES["messages"][answer.finish],
        "stop_sequence": None,
        "usage": {
            "input_tokens": answer.prompt - answer.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": answer.cached,
            "output_tokens": answer.completion,
        },
    }


def _generate(answer: Answer, asked: Asked) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [] if answer.text is None else [{"text": answer.text}]
    parts += [
        {"functionCall": {"id": _call_id(answer, index), "name": name, "args": _parsed(arguments)}}
        for index, (name, arguments) in enumerate(answer.tools)
    ]
    finish = FINISHES["generate"][answer.finish]
    usage = {
        "promptTokenCount": answer.prompt,
        "totalTokenCount": answer.prompt + answer.completion,
        "candidatesTokenCount": max(0, answer.completion - answer.reasoning),
        **({"cachedContentTokenCount": answer.cached} if answer.cached else {}),
        **({"thoughtsTokenCount": answer.reasoning} if answer.reasoning else {}),
    }
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0, "finishReason": finish}],
        "usageMetadata": usage,
        "modelVersion": asked.model,
        "responseId": f"scripted-{answer.number}",
    }


def _call_id(answer: Answer, index: int) -> str:
    return f"call_{answer.number}_{index}"


def _parsed(arguments: str) -> Any:
    """Return parsed arguments; empty if they are not JSON, which these protocols can't represent."""
    try:
        return json.loads(arguments)
    except ValueError:
        return {}
