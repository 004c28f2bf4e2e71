"""A complete answer as the events of a stream, each with all that it can hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mleredux_gateway.usage import Kind


def frames_of(kind: Kind, response: dict[str, Any], *, usage: bool = True) -> Iterator[bytes]:
    """Yield the events of a stream whose whole is this response.

    Args:
        usage: Whether a stream of chat completions ends with the usage.
    """
    events = {"chat": _chat, "responses": _responses, "messages": _messages, "generate": _generate}[kind](response)
    for event in events:
        if kind == "chat" and not event["choices"] and not usage:
            continue
        name = f"event: {event['type']}\n" if "type" in event else ""
        yield f"{name}data: {json.dumps(event)}\n\n".encode()
    if kind == "chat":
        yield b"data: [DONE]\n\n"


def _generate(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield response


def _chat(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    head = {name: value for name, value in response.items() if name not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"
    for choice in response.get("choices") or []:
        delta = dict(choice.get("message") or {})
        if delta.get("tool_calls"):
            delta["tool_calls"] = [{**call, "index": place} for place, call in enumerate(delta["tool_calls"])]
        index = choice.get("index", 0)
        yield {**head, "choices": [{"index": index, "delta": delta, "finish_reason": None}]}
        yield {**head, "choices": [{"index": index, "delta": {}, "finish_reason": choice.get("finish_reason")}]}
    yield {**head, "choices": [], "usage": response.get("usage")}


def _responses(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    events = _responses_without_numbers(response)
    yield from ({**event, "sequence_number": number} for number, event in enumerate(events))


def _responses_without_numbers(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": [], "usage": None}}
    for place, item in enumerate(response.get("output") or []):
        at = {"output_index": place, "item_id": item.get("id")}
        yield {"type": "response.output_item.added", "output_index": place, "item": {**item, "status": "in_progress"}}
        for number, part in enumerate(item.get("content") or [] if item.get("type") == "message" else []):
            text = {**at, "content_index": number}
            yield {"type": "response.content_part.added", **text, "part": {**part, "text": ""}}
            yield {"type": "response.output_text.delta", **text, "delta": part.get("text", ""), "logprobs": []}
            yield {"type": "response.output_text.done", **text, "text": part.get("text", ""), "logprobs": []}
            yield {"type": "response.content_part.done", **text, "part": part}
        if item.get("type") == "function_call":
            asked = item.get("arguments", "")
            yield {"type": "response.function_call_arguments.delta", **at, "delta": asked}
            yield {"type": "response.function_call_arguments.done", **at, "arguments": asked}
        yield {"type": "response.output_item.done", "output_index": place, "item": item}
    ended = response.get("status") if response.get("status") in ("incomplete", "failed") else "completed"
    yield {"type": f"response.{ended}", "response": response}


def _messages(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    usage = response.get("usage") or {}
    begun = {
        **response,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 0},
    }
    yield {"type": "message_start", "message": begun}
    for place, block in enumerate(response.get("content") or []):
        empty, deltas = _block(block)
        yield {"type": "content_block_start", "index": place, "content_block": empty}
        yield from ({"type": "content_block_delta", "index": place, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": place}
    stop = {name: response.get(name) for name in ("stop_reason", "stop_sequence")}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": usage.get("output_tokens", 0)}}
    yield {"type": "message_stop"}


def _block(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it starts, and its deltas."""
    if block.get("type") == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": block.get("text", "")}]
    if block.get("type") == "tool_use":
        asked = json.dumps(block.get("input", {}))
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": asked}]
    if block.get("type") == "thinking":
        signed = {"type": "signature_delta", "signature": block.get("signature", "")}
        return {**block, "thinking": "", "signature": ""}, [
            {"type": "thinking_delta", "thinking": block.get("thinking", "")},
            signed,
        ]
    return block, []
