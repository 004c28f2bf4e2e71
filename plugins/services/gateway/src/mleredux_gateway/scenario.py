"""The record of a run as a scenario of mleredux-scripted-llm: a test of an agent, made from a real run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mleredux_rollout import ExportedRun, Format

from mleredux_gateway.record import CALLS, FOLDER, read_calls
from mleredux_gateway.usage import Kind, reported

_FINISHES = {
    "length": "length",
    "max_tokens": "length",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}


def _write(runs: Sequence[ExportedRun], _options: Mapping[str, Any]) -> Iterable[bytes]:
    [one] = runs
    path = one.run.path / FOLDER / CALLS
    calls = sorted(read_calls(path), key=lambda call: int(call["call"]))
    answered = [call for call in calls if isinstance(call.get("request"), dict) and call.get("response") is not None]
    rules = [
        {"name": f"call-{number}", "when": {"calls": number}, "reply": reply_of(call)}
        for number, call in enumerate(answered)
    ]
    models = list(dict.fromkeys(str(call["request"].get("model")) for call in answered))
    yield f"# The answers of run {one.run.id}, in order. JSON is YAML, too.\n".encode()
    yield json.dumps({"models": models, "rules": rules}, indent=1, ensure_ascii=False).encode() + b"\n"


def reply_of(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a scenario replies as this call was answered."""
    response, kind = call["response"], call["kind"]
    if call.get("status") != 200 or not isinstance(response, dict):
        said = response.get("error") if isinstance(response, dict) else response
        message = said.get("message") if isinstance(said, dict) else said
        return {"error": {"status": int(call.get("status") or 502), "message": str(message)}}
    texts, tools, finish = list[str](), list[dict[str, Any]](), None
    for part in _parts(kind, response):
        if "name" in part:
            tools.append(part)
        elif "finish" in part:
            finish = _FINISHES.get(str(part["finish"]))
        else:
            texts.append(str(part["text"]))
    reply: dict[str, Any] = {"text": "".join(texts)} if texts or not tools else {}
    reply |= {"tools": tools} if tools else {}
    reply |= {"finish": finish} if finish else {}
    if tokens := reported(kind, response):
        reply["usage"] = {"prompt": tokens.prompt, "completion": tokens.completion, "cached": tokens.cached}
    return reply


def _parts(kind: Kind, response: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The texts, the tool calls and the finish reason of a response."""
    if kind == "chat":
        for choice in (response.get("choices") or [])[:1]:
            message = choice.get("message") or {}
            yield from ({"text": text} for text in [message.get("content")] if text)
            for call in message.get("tool_calls") or []:
                yield _tool(call["function"]["name"], call["function"].get("arguments"))
            yield {"finish": choice.get("finish_reason")}
        return
    if kind == "generate":
        for candidate in (response.get("candidates") or [])[:1]:
            for part in (candidate.get("content") or {}).get("parts") or []:
                if "functionCall" in part:
                    yield {"name": part["functionCall"]["name"], "arguments": part["functionCall"].get("args") or {}}
                elif part.get("text") and not part.get("thought"):
                    yield {"text": part["text"]}
            yield {"finish": candidate.get("finishReason")}
        return
    for item in response.get("content" if kind == "messages" else "output") or []:
        if item.get("type") == "text":
            yield {"text": item.get("text", "")}
        elif item.get("type") == "tool_use":
            yield {"name": item["name"], "arguments": item.get("input", {})}
        elif item.get("type") == "function_call":
            yield _tool(item["name"], item.get("arguments"))
        elif item.get("type") == "message":
            yield from ({"text": part.get("text", "")} for part in item.get("content") or [])
    details = response.get("incomplete_details") or {}
    yield {"finish": response.get("stop_reason") or details.get("reason")}


def _tool(name: str, arguments: Any) -> dict[str, Any]:
    try:
        found = json.loads(arguments or "{}")
    except (TypeError, ValueError):
        found = None
    return (
        {"name": name, "arguments": found}
        if isinstance(found, dict)
        else {"name": name, "raw_arguments": str(arguments)}
    )


SCENARIO = Format(
    id="scenario",
    title="Scenario of mleredux-scripted-llm: the recorded answers of language models, in order",
    suffix=".yaml",
    write=_write,
)
