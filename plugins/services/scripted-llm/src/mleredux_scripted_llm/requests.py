"""Requests of all protocols in one form, the choice of the matching rule, and its replies in each protocol."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mleredux_llm_protocols import Action, Kind, Turn, request_turns, tools_of
from mleredux_llm_protocols.turns import FINISHES, Finish

from mleredux_scripted_llm.scenario import Call, Protocol, Reply, Rule, Scenario, When, fill

_FLAGS = re.MULTILINE | re.DOTALL
_PROTOCOLS: dict[Kind, Protocol] = {
    "chat": "openai-chat",
    "responses": "openai-responses",
    "messages": "anthropic",
    "generate": "google",
}
"""The protocols' names in scenarios."""


@dataclass(frozen=True)
class Request:
    """The contents of a request in any protocol."""

    kind: Kind
    turns: tuple[Turn, ...]
    body: dict[str, Any]

    @property
    def protocol(self) -> Protocol:
        """The protocol's name in scenarios."""
        return _PROTOCOLS[self.kind]

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.body.get("model") or "")

    @property
    def stream(self) -> bool:
        """Whether the reply is sent in pieces."""
        return bool(self.body.get("stream"))

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the offered tools."""
        return tuple(tool["function"]["name"] for tool in tools_of(self.body))

    @property
    def last(self) -> str:
        """Messages since the model's last reply, without the system prompt unless that is all there is."""
        start = max((i + 1 for i, turn in enumerate(self.turns) if turn.role == "assistant"), default=0)
        new = self.turns[start:]
        return _joined([turn for turn in new if turn.role != "system"] or new)

    @property
    def system(self) -> str:
        """The system prompt."""
        return _joined(turn for turn in self.turns if turn.role == "system")

    @property
    def any(self) -> str:
        """All messages."""
        return _joined(self.turns)


@dataclass(frozen=True)
class Answer:
    """A reply with its placeholders filled in, and the tokens it reports."""

    number: int
    text: str | None
    tools: tuple[tuple[str, str], ...]
    """Name and arguments (JSON) of each tool call."""
    finish: Finish
    prompt: int
    cached: int
    completion: int
    reasoning: int
    reply: Reply


@dataclass
class Conversation:
    """The history of requests under one API key."""

    calls: int = 0
    uses: Counter[int] = field(default_factory=Counter)
    kept: dict[str, tuple[Turn, ...]] = field(default_factory=dict)
    """Messages of earlier responses by id, from which the responses protocol can continue."""


def choose(scenario: Scenario, conversation: Conversation, request: Request) -> tuple[Rule, Answer] | None:
    """Return the first matching rule, counted as used, and its reply; None if none matches."""
    number = conversation.calls
    conversation.calls += 1
    used = {rule.name for index, rule in enumerate(scenario.rules) if conversation.uses[index]}
    for index, rule in enumerate(scenario.rules):
        reply = rule.reply_at(conversation.uses[index])
        groups = _fits(rule.when, request, used, number) if reply is not None else None
        if reply is None or groups is None:
            continue
        if rule.unless is not None and _fits(rule.unless, request, used, number) is not None:
            continue
        conversation.uses[index] += 1
        return rule, _answer(reply, groups, scenario.files, request, number)
    return None


def _fits(when: When, request: Request, used: set[str], number: int) -> dict[str, str] | None:
    """Return the named groups of all patterns, or None if any does not match."""
    plain = (
        set(when.tools) <= set(request.tools)
        and when.has_tools in (None, bool(request.tools))
        and when.protocol in (None, request.protocol)
        and when.stream in (None, request.stream)
        and when.calls in (None, number)
        and set(when.after) <= used
        and not set(when.before) & used
    )
    if not plain:
        return None
    groups: dict[str, str] = {}
    for patterns, text in (
        (when.last, request.last),
        (when.any, request.any),
        (when.system, request.system),
        (when.model, request.model),
    ):
        for pattern in patterns:
            match = re.search(pattern, text, _FLAGS)
            if match is None:
                return None
            groups |= {name: value for name, value in match.groupdict().items() if value is not None}
    return groups


def _answer(reply: Reply, groups: dict[str, str], files: dict[str, str], request: Request, number: int) -> Answer:
    text = None if reply.text is None else str(fill(reply.text, groups, files))
    tools = tuple((call.name, _arguments(call, groups, files)) for call in reply.tools)
    written = (text or "") + "".join(name + arguments for name, arguments in tools)
    usage = reply.usage
    return Answer(
        number=number,
        text=text,
        tools=tools,
        finish=reply.finish or ("tools" if tools else "stop"),
        prompt=tokens_in(request.any) if usage.prompt is None else usage.prompt,
        cached=usage.cached,
        completion=tokens_in(written) if usage.completion is None else usage.completion,
        reasoning=usage.reasoning,
        reply=reply,
    )


def _arguments(call: Call, groups: dict[str, str], files: dict[str, str]) -> str:
    if call.raw_arguments is not None:
        return call.raw_arguments
    return json.dumps(fill(call.arguments, groups, files), ensure_ascii=False)


def tokens_in(text: str) -> int:
    """Return a quarter of the characters, at least one."""
    return max(1, -(-len(text) // 4))


def read(kind: Kind, body: dict[str, Any], earlier: tuple[Turn, ...] = ()) -> Request:
    """Parse a request, after the turns of the response that it continues from."""
    turns = request_turns(kind, body)
    system = [turn for turn in turns[:1] if turn.role == "system"]
    return Request(kind, (*system, *earlier, *turns[len(system) :]), body)


def _joined(turns: Iterable[Turn]) -> str:
    """Return the text of all turns, including tool calls."""
    return "\n\n".join("\n".join(filter(None, (turn.text, *map(_written, turn.actions)))) for turn in turns)


def _written(call: Action) -> str:
    arguments = call.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"{call.name}({text})"


_CREATED = 1_700_000_000
"""Unix time of a conversation's first reply, fixed so that replies are reproducible."""


def identity(answer: Answer) -> str:
    """Return the id of a response, which a later request can continue from."""
    return f"resp_scripted_{answer.number}"


def response_of(answer: Answer, request: Request) -> dict[str, Any]:
    """Return the non-streaming response to a request."""
    build = {"chat": _chat, "responses": _responses, "messages": _messages, "generate": _generate}[request.kind]
    return build(answer, request)


def _chat(answer: Answer, request: Request) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    finish = FINISHES["chat"][answer.finish]
    functions = [{"name": name, "arguments": arguments} for name, arguments in answer.tools]
    if functions and request.body.get("functions") and not request.body.get("tools"):  # the format that preceded tools
        message["function_call"] = functions[0]
        finish = "function_call" if answer.finish == "tools" else finish
    elif functions:
        message["tool_calls"] = [
            {"id": _call_id(answer, index), "type": "function", "function": function}
            for index, function in enumerate(functions)
        ]
    choices = [
        {"index": index, "message": message, "logprobs": None, "finish_reason": finish}
        for index in range(1 if request.stream else request.body.get("n") or 1)
    ]
    return {
        "id": f"chatcmpl-scripted-{answer.number}",
        "object": "chat.completion",
        "created": _CREATED + answer.number,
        "model": request.model,
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


def _responses(answer: Answer, request: Request) -> dict[str, Any]:
    reason, body = FINISHES["responses"].get(answer.finish), request.body
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
        "model": request.model,
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


def _messages(answer: Answer, request: Request) -> dict[str, Any]:
    content: list[dict[str, Any]] = [] if answer.text is None else [{"type": "text", "text": answer.text}]
    content += [
        {
            "type": "tool_use",
            "id": f"toolu_{answer.number}_{index}",
            "name": name,
            "input": arguments if request.stream else _parsed(arguments),  # only streams can contain arbitrary text
        }
        for index, (name, arguments) in enumerate(answer.tools)
    ]
    return {
        "id": f"msg_scripted_{answer.number}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
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


def _generate(answer: Answer, request: Request) -> dict[str, Any]:
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
        "modelVersion": request.model,
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
