"""Convert a whole response to the events of a stream, with each text in chunks or in one event."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mleredux_llm_protocols.routes import Kind
from mleredux_llm_protocols.sse import DONE, encode

Events = Iterator[dict[str, Any]]
_EMPTY: dict[str, dict[str, Any]] = {"message": {"content": []}, "function_call": {"arguments": ""}}
"""Items of the responses protocol as they start."""


def frames_of(kind: Kind, response: dict[str, Any], *, usage: bool = True, size: int | None = None) -> Iterator[bytes]:
    """Yield the events of a stream that together form this response.

    Args:
        kind: The protocol.
        response: The whole response.
        usage: Whether a stream of chat completions ends with the usage.
        size: Number of characters of a text, or of a call's arguments, per event; None: all of them in one event.
    """
    if kind == "chat":
        yield from map(encode, _chat(response, size, usage=usage))
        yield DONE
    else:
        split = {"responses": _responses, "messages": _messages, "generate": _generate}[kind]
        yield from map(encode, split(response, size))


def _pieces(text: Any, size: int | None) -> Iterator[str]:
    if isinstance(text, str):
        step = size or len(text) or 1
        yield from (text[start : start + step] for start in range(0, len(text), step))


def _chat(response: dict[str, Any], size: int | None, *, usage: bool) -> Events:
    head = {name: value for name, value in response.items() if name not in ("choices", "usage")}
    head |= {"object": "chat.completion.chunk", **({"usage": None} if usage else {})}
    for place, choice in enumerate(response.get("choices") or []):
        for delta in (*_deltas(choice.get("message") or {}, size), None):
            end = {"delta": delta or {}, "finish_reason": choice.get("finish_reason") if delta is None else None}
            yield {**head, "choices": [{"index": choice.get("index", place), "logprobs": None, **end}]}
    if usage:
        yield {**head, "choices": [], "usage": response.get("usage")}


def _deltas(message: dict[str, Any], size: int | None) -> Events:
    content, calls = message.get("content"), message.get("tool_calls") or []
    rest = {name: value for name, value in message.items() if name != "tool_calls"}
    yield {**rest, "content": "" if isinstance(content, str) else content}
    yield from ({"content": piece} for piece in _pieces(content, size))
    for index, call in enumerate(calls):
        function = call.get("function") or {}
        begun = {"function": {**function, "arguments": ""}} if function else {}
        yield {"tool_calls": [{**call, **begun, "index": index}]}
        for piece in _pieces(function.get("arguments"), size):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _responses(response: dict[str, Any], size: int | None) -> Events:
    events = _responses_without_numbers(response, size)
    yield from ({**event, "sequence_number": number} for number, event in enumerate(events))


def _responses_without_numbers(response: dict[str, Any], size: int | None) -> Events:
    begun = {**response, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for place, item in enumerate(response.get("output") or []):
        at = {"output_index": place, "item_id": item.get("id")}
        empty = _EMPTY.get(str(item.get("type")), {})
        added = {**item, "status": "in_progress", **empty}
        yield {"type": "response.output_item.added", "output_index": place, "item": added}
        for number, part in enumerate(item.get("content") or [] if item.get("type") == "message" else []):
            text = {**at, "content_index": number}
            yield {"type": "response.content_part.added", **text, "part": {**part, "text": ""}}
            for piece in _pieces(part.get("text"), size):
                yield {"type": "response.output_text.delta", **text, "delta": piece, "logprobs": []}
            yield {"type": "response.output_text.done", **text, "text": part.get("text", ""), "logprobs": []}
            yield {"type": "response.content_part.done", **text, "part": part}
        if item.get("type") == "function_call":
            arguments = item.get("arguments", "")
            for piece in _pieces(arguments, size):
                yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
            done = {"name": item.get("name"), "arguments": arguments}
            yield {"type": "response.function_call_arguments.done", **at, **done}
        yield {"type": "response.output_item.done", "output_index": place, "item": item}
    ended = response.get("status") if response.get("status") in ("incomplete", "failed") else "completed"
    yield {"type": f"response.{ended}", "response": response}


def _messages(response: dict[str, Any], size: int | None) -> Events:
    usage = response.get("usage") or {}
    begun: dict[str, Any] = {
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    yield {"type": "message_start", "message": {**response, **begun}}
    yield {"type": "ping"}
    for place, block in enumerate(response.get("content") or []):
        empty, deltas = _block(block, size)
        yield {"type": "content_block_start", "index": place, "content_block": empty}
        yield from ({"type": "content_block_delta", "index": place, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": place}
    stop = {name: response.get(name) for name in ("stop_reason", "stop_sequence")}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": usage.get("output_tokens", 0)}}
    yield {"type": "message_stop"}


def _block(block: dict[str, Any], size: int | None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a block as it starts, and its deltas; arguments that are a string are sent unchanged."""
    if block.get("type") == "text":
        pieces = _pieces(block.get("text"), size)
        return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces]
    if block.get("type") == "tool_use":
        arguments = block.get("input", {})
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(text, size)]
        return {**block, "input": {}}, deltas
    if block.get("type") == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block.get("thinking"), size)]
        signed = {"type": "signature_delta", "signature": block.get("signature", "")}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signed]
    return block, []


def _generate(response: dict[str, Any], size: int | None) -> Events:
    """Split only the texts; tool calls, and responses with several candidates, are sent whole."""
    candidates = response.get("candidates") or []
    if size is None or len(candidates) != 1:
        yield response
        return
    [candidate], usage = candidates, response.get("usageMetadata") or {}
    content = candidate.get("content") or {}
    parts = content.get("parts") or []
    texts = [part for part in parts if set(part) == {"text"}]
    begun = {name: usage[name] for name in ("promptTokenCount", "cachedContentTokenCount") if name in usage}
    begun["totalTokenCount"] = usage.get("promptTokenCount")
    for piece in (piece for part in texts for piece in _pieces(part["text"], size)):
        now = {"content": {**content, "parts": [{"text": piece}]}, "index": candidate.get("index", 0)}
        yield {**response, "candidates": [now], "usageMetadata": begun}
    rest = [part for part in parts if part not in texts] or [{"text": ""}]
    yield {**response, "candidates": [{**candidate, "content": {**content, "parts": rest}}]}
