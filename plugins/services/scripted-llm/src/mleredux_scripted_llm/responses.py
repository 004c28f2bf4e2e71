"""Responses in OpenAI's responses protocol."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from mleredux_scripted_llm.fragments import CREATED, Frame, cut, sse
from mleredux_scripted_llm.requests import Answer, Asked


def identity(answer: Answer) -> str:
    """Return the response's id, which a later request can continue from."""
    return f"resp_scripted_{answer.number}"


def whole(answer: Answer, asked: Asked) -> dict[str, Any]:
    """Return the response to a request without streaming."""
    cut_off = answer.finish in ("length", "content_filter")
    reason = "max_output_tokens" if answer.finish == "length" else answer.finish
    return {
        **_shell(answer, asked, "incomplete" if cut_off else "completed"),
        "incomplete_details": {"reason": reason} if cut_off else None,
        "output": _items(answer),
        "usage": {
            "input_tokens": answer.prompt,
            "input_tokens_details": {"cached_tokens": answer.cached},
            "output_tokens": answer.completion,
            "output_tokens_details": {"reasoning_tokens": answer.reasoning},
            "total_tokens": answer.prompt + answer.completion,
        },
    }


def stream(answer: Answer, asked: Asked) -> Iterator[Frame]:
    """Yield the response in pieces."""
    numbers = count()

    def event(kind: str, **fields: Any) -> Frame:
        return sse({"type": kind, "sequence_number": next(numbers), **fields}, kind)

    begun = _shell(answer, asked, "in_progress")
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for index, item in enumerate(_items(answer)):
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            part = item["content"][0]
            yield event(
                "response.output_item.added",
                output_index=index,
                item={**item, "status": "in_progress", "content": []},
            )
            yield event("response.content_part.added", **place, content_index=0, part={**part, "text": ""})
            for piece in cut(part["text"], answer.reply.chunk):
                yield event("response.output_text.delta", **place, content_index=0, delta=piece, logprobs=[])
            yield event("response.output_text.done", **place, content_index=0, text=part["text"], logprobs=[])
            yield event("response.content_part.done", **place, content_index=0, part=part)
        else:
            yield event(
                "response.output_item.added",
                output_index=index,
                item={**item, "status": "in_progress", "arguments": ""},
            )
            for piece in cut(item["arguments"], answer.reply.chunk):
                yield event("response.function_call_arguments.delta", **place, delta=piece)
            yield event(
                "response.function_call_arguments.done", **place, name=item["name"], arguments=item["arguments"]
            )
        yield event("response.output_item.done", output_index=index, item=item)
    done = whole(answer, asked)
    yield event(f"response.{done['status']}", response=done)


def _items(answer: Answer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answer.text is not None:
        part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        items.append(
            {
                "id": f"msg_{answer.number}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    items += [
        {
            "id": f"fc_{answer.number}_{index}",
            "type": "function_call",
            "call_id": f"call_{answer.number}_{index}",
            "name": name,
            "arguments": arguments,
            "status": "completed",
        }
        for index, (name, arguments) in enumerate(answer.tools)
    ]
    return items


def _shell(answer: Answer, asked: Asked, status: str) -> dict[str, Any]:
    return {
        "id": identity(answer),
        "object": "response",
        "created_at": CREATED + answer.number,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": asked.body.get("instructions"),
        "max_output_tokens": asked.body.get("max_output_tokens"),
        "metadata": asked.body.get("metadata") or {},
        "model": asked.model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": asked.body.get("previous_response_id"),
        "reasoning": {"effort": None, "summary": None},
        "store": bool(asked.body.get("store", True)),
        "temperature": asked.body.get("temperature", 1.0),
        "text": asked.body.get("text") or {"format": {"type": "text"}},
        "tool_choice": asked.body.get("tool_choice") or "auto",
        "tools": asked.body.get("tools") or [],
        "top_p": asked.body.get("top_p", 1.0),
        "truncation": "disabled",
        "usage": None,
    }
