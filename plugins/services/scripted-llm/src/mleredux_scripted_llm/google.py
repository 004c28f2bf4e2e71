"""Responses in Google's generateContent protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mleredux_scripted_llm.fragments import Frame, cut, sse
from mleredux_scripted_llm.requests import Answer, Asked

_FINISH = {"tools": "STOP", "stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}


def whole(answer: Answer, asked: Asked) -> dict[str, Any]:
    """Return the response to a request without streaming."""
    said = [] if answer.text is None else [{"text": answer.text}]
    return _response(answer, asked, [*said, *_calls(answer)], last=True)


def stream(answer: Answer, asked: Asked) -> Iterator[Frame]:
    """Yield the response in pieces; tool calls come whole."""
    for piece in cut(answer.text or "", answer.reply.chunk):
        yield sse(_response(answer, asked, [{"text": piece}], last=False))
    yield sse(_response(answer, asked, _calls(answer) or [{"text": ""}], last=True))


def _calls(answer: Answer) -> list[dict[str, Any]]:
    """Return tool calls. Arguments that are not JSON become none: this protocol can't represent them."""
    calls = []
    for index, (name, arguments) in enumerate(answer.tools):
        try:
            given = json.loads(arguments)
        except ValueError:
            given = {}
        calls.append({"functionCall": {"id": f"call_{answer.number}_{index}", "name": name, "args": given}})
    return calls


def _response(answer: Answer, asked: Asked, parts: list[dict[str, Any]], *, last: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    usage = {"promptTokenCount": answer.prompt, "totalTokenCount": answer.prompt + (answer.completion if last else 0)}
    if answer.cached:
        usage["cachedContentTokenCount"] = answer.cached
    if last:
        candidate["finishReason"] = _FINISH[answer.finish]
        usage["candidatesTokenCount"] = max(0, answer.completion - answer.reasoning)
        if answer.reasoning:
            usage["thoughtsTokenCount"] = answer.reasoning
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": asked.model,
        "responseId": f"scripted-{answer.number}",
    }
