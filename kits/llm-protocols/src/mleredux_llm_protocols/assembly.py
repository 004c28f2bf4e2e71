"""Assemble a streamed response while it passes through."""

from __future__ import annotations

import json
from typing import Any, Protocol

from mleredux_llm_protocols.routes import Kind
from mleredux_llm_protocols.usage import Tokens, reported, tokens_of


class Assembler(Protocol):
    """Collects the events of one response."""

    @property
    def done(self) -> bool:
        """Whether the response is complete."""

    def feed(self, event: dict[str, Any]) -> None:
        """Add one event."""

    def tokens(self) -> Tokens | None:
        """Return the usage that the provider reported so far: final only once the response is complete."""

    def response(self) -> dict[str, Any]:
        """Return the received part of the response, in its non-streamed form."""


def assembler(kind: Kind) -> Assembler:
    """Return a collector for a response of this protocol."""
    assemblers: dict[Kind, type[Assembler]] = {
        "chat": _Chat,
        "responses": _Responses,
        "messages": _Messages,
        "generate": _Generate,
    }
    return assemblers[kind]()


class _Chat:
    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._usage: Any = None
        self._choices: dict[int, dict[str, Any]] = {}
        self._texts: dict[tuple[int, str], list[str]] = {}
        self._calls: dict[tuple[int, int], dict[str, Any]] = {}

    def feed(self, event: dict[str, Any]) -> None:
        for name in ("id", "model", "created", "error"):
            if event.get(name) is not None:
                self._head.setdefault(name, event[name])
        self._usage = event.get("usage") or self._usage
        for choice in event.get("choices") or ():
            index = int(choice.get("index") or 0)
            state = self._choices.setdefault(index, {"index": index, "finish_reason": None})
            if choice.get("finish_reason"):
                state["finish_reason"] = choice["finish_reason"]
            delta = choice.get("delta") or {}
            for name in ("content", "reasoning_content", "reasoning", "refusal"):
                if isinstance(delta.get(name), str):
                    self._texts.setdefault((index, name), []).append(delta[name])
            for call in delta.get("tool_calls") or ():
                self._call(index, call)
            if delta.get("function_call"):
                self._call(index, {"index": -1, "function": delta["function_call"]})

    def _call(self, choice: int, call: dict[str, Any]) -> None:
        known = self._calls.setdefault(
            (choice, int(call.get("index") or 0)), {"id": None, "type": "function", "name": "", "arguments": []}
        )
        known["id"] = known["id"] or call.get("id")
        function = call.get("function") or {}
        known["name"] += function.get("name") or ""
        known["arguments"].append(function.get("arguments") or "")

    @property
    def done(self) -> bool:
        return bool(self._choices) and all(state["finish_reason"] for state in self._choices.values())

    def tokens(self) -> Tokens | None:
        return tokens_of("chat", self._usage)

    def response(self) -> dict[str, Any]:
        choices = []
        for index, state in sorted(self._choices.items()):
            message: dict[str, Any] = {"role": "assistant", "content": None}
            message |= {name: "".join(texts) for (choice, name), texts in self._texts.items() if choice == index}
            calls = [
                {
                    "id": call["id"],
                    "type": call["type"],
                    "function": {"name": call["name"], "arguments": "".join(call["arguments"])},
                }
                for (choice, _), call in sorted(self._calls.items())
                if choice == index
            ]
            choices.append({**state, "message": {**message, **({"tool_calls": calls} if calls else {})}})
        return {**self._head, "object": "chat.completion", "choices": choices, "usage": self._usage}


class _Responses:
    def __init__(self) -> None:
        self.done = False
        self._response: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}

    def feed(self, event: dict[str, Any]) -> None:
        if isinstance(event.get("response"), dict):
            self._response = event["response"]
        kind = str(event.get("type"))
        self.done |= kind in ("response.completed", "response.incomplete", "response.failed")
        if kind.endswith(".delta") and isinstance(event.get("delta"), str):
            self._texts.setdefault(str(event.get("item_id")), []).append(event["delta"])

    def tokens(self) -> Tokens | None:
        return tokens_of("responses", self._response.get("usage"))

    def response(self) -> dict[str, Any]:
        if self.done:
            return self._response
        parts = [{"type": "partial", "id": item, "text": "".join(texts)} for item, texts in self._texts.items()]
        return {**self._response, "output": parts}


class _Messages:
    def __init__(self) -> None:
        self.done = False
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}

    def feed(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        index = event.get("index") if isinstance(event.get("index"), int) else 0
        assert isinstance(index, int)
        if kind == "message_start" and isinstance(event.get("message"), dict):
            self._message = dict(event["message"])
            self._usage |= _known(self._message.get("usage"))
        elif kind == "content_block_start":
            self._blocks[index] = dict(event.get("content_block") or {})
        elif kind == "content_block_delta":
            delta = event.get("delta") or {}
            for name in ("text", "thinking", "partial_json", "signature"):
                if isinstance(delta.get(name), str):
                    self._pieces.setdefault((index, name), []).append(delta[name])
        elif kind == "message_delta":
            self._message |= _known(event.get("delta"))
            self._usage |= _known(event.get("usage"))
        elif kind == "error":
            self._message["error"] = event.get("error")
        self.done |= kind == "message_stop"

    def tokens(self) -> Tokens | None:
        return tokens_of("messages", self._usage)

    def response(self) -> dict[str, Any]:
        content = []
        for index, block in sorted(self._blocks.items()):
            whole = dict(block)
            for (number, name), pieces in self._pieces.items():
                if number == index and name == "partial_json":
                    whole["input"] = _json("".join(pieces))
                elif number == index:
                    whole[name] = f"{block.get(name) or ''}{''.join(pieces)}"
            content.append(whole)
        return {**self._message, "content": content, "usage": self._usage}


class _Generate:
    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._candidates: dict[int, dict[str, Any]] = {}

    def feed(self, event: dict[str, Any]) -> None:
        self._head |= {name: value for name, value in event.items() if name != "candidates" and value is not None}
        for candidate in event.get("candidates") or ():
            state = self._candidates.setdefault(int(candidate.get("index") or 0), {})
            parts = state.get("content", {}).get("parts", [])
            state |= _known(candidate)
            for part in (candidate.get("content") or {}).get("parts") or ():
                last = parts[-1] if parts else {}
                if set(part) | set(last) <= {"text", "thought"} and part.get("thought") == last.get("thought"):
                    parts[-1:] = [{**part, "text": last.get("text", "") + part.get("text", "")}]
                else:
                    parts.append(part)
            state["content"] = {"role": "model", "parts": parts}

    @property
    def done(self) -> bool:
        ended = [bool(state.get("finishReason")) for state in self._candidates.values()]
        return all(ended) if ended else "promptFeedback" in self._head

    def tokens(self) -> Tokens | None:
        return reported("generate", self._head)

    def response(self) -> dict[str, Any]:
        candidates = [state for _, state in sorted(self._candidates.items())]
        return {**self._head, **({"candidates": candidates} if candidates else {})}


def _known(value: Any) -> dict[str, Any]:
    return {name: part for name, part in value.items() if part is not None} if isinstance(value, dict) else {}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
