"""Requests of all protocols in one form, and the rule that matches one."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from mleredux_scripted_llm.scenario import Call, Protocol, Reply, Rule, Scenario, When, fill

_FLAGS = re.MULTILINE | re.DOTALL
_SYSTEM = ("system", "developer")


@dataclass(frozen=True)
class Message:
    """A role, and all its text: content, tool calls, tool results."""

    role: str
    text: str


@dataclass(frozen=True)
class Asked:
    """The contents of a request, for any protocol."""

    protocol: Protocol
    model: str
    messages: tuple[Message, ...]
    tools: tuple[str, ...]
    stream: bool
    body: dict[str, Any]

    @property
    def last(self) -> str:
        """Messages since the model's last reply, without the system prompt unless there is nothing else."""
        start = max((i + 1 for i, message in enumerate(self.messages) if message.role == "assistant"), default=0)
        new = self.messages[start:]
        return _joined([message for message in new if message.role not in _SYSTEM] or list(new))

    @property
    def system(self) -> str:
        """The system prompt."""
        return _joined([message for message in self.messages if message.role in _SYSTEM])

    @property
    def any(self) -> str:
        """All messages."""
        return _joined(list(self.messages))


@dataclass(frozen=True)
class Answer:
    """A reply with its placeholders filled in, and the tokens it reports."""

    number: int
    text: str | None
    tools: tuple[tuple[str, str], ...]
    """Name and arguments (JSON) of each tool call."""
    finish: str
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
    kept: dict[str, tuple[Message, ...]] = field(default_factory=dict)
    """Messages of earlier responses, by id, which the responses protocol can continue from."""


def choose(scenario: Scenario, conversation: Conversation, asked: Asked) -> tuple[Rule, Answer] | None:
    """Return the first matching rule, counted as used, and its reply; None if none matches."""
    number = conversation.calls
    conversation.calls += 1
    used = {rule.name for index, rule in enumerate(scenario.rules) if conversation.uses[index]}
    for index, rule in enumerate(scenario.rules):
        reply = rule.reply_at(conversation.uses[index])
        groups = _fits(rule.when, asked, used, number) if reply is not None else None
        if reply is None or groups is None:
            continue
        if rule.unless is not None and _fits(rule.unless, asked, used, number) is not None:
            continue
        conversation.uses[index] += 1
        return rule, _answer(reply, groups, scenario.files, asked, number)
    return None


def _fits(when: When, asked: Asked, used: set[str], number: int) -> dict[str, str] | None:
    """Return the named groups of all patterns, or None if one does not match."""
    plain = (
        set(when.tools) <= set(asked.tools)
        and when.has_tools in (None, bool(asked.tools))
        and when.protocol in (None, asked.protocol)
        and when.stream in (None, asked.stream)
        and when.calls in (None, number)
        and set(when.after) <= used
        and not set(when.before) & used
    )
    if not plain:
        return None
    groups: dict[str, str] = {}
    for patterns, text in (
        (when.last, asked.last),
        (when.any, asked.any),
        (when.system, asked.system),
        (when.model, asked.model),
    ):
        for pattern in patterns:
            match = re.search(pattern, text, _FLAGS)
            if match is None:
                return None
            groups |= {name: value for name, value in match.groupdict().items() if value is not None}
    return groups


def _answer(reply: Reply, groups: dict[str, str], files: dict[str, str], asked: Asked, number: int) -> Answer:
    text = None if reply.text is None else str(fill(reply.text, groups, files))
    tools = tuple((call.name, _arguments(call, groups, files)) for call in reply.tools)
    written = (text or "") + "".join(name + arguments for name, arguments in tools)
    usage = reply.usage
    return Answer(
        number=number,
        text=text,
        tools=tools,
        finish=reply.finish or ("tools" if tools else "stop"),
        prompt=tokens_in(asked.any) if usage.prompt is None else usage.prompt,
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


def read_chat(body: dict[str, Any]) -> Asked:
    """Parse a request of OpenAI's chat completions."""
    messages = []
    for message in body.get("messages") or ():
        calls = [call.get("function") or {} for call in message.get("tool_calls") or ()]
        calls += [message["function_call"]] if message.get("function_call") else []
        said = [_text(message.get("content")), *(f"{call.get('name')}({call.get('arguments')})" for call in calls)]
        messages.append(Message(str(message.get("role")), "\n".join(part for part in said if part)))
    tools = [tool.get("function") or tool for tool in body.get("tools") or ()] + list(body.get("functions") or ())
    return _asked("openai-chat", body, messages, tools)


def read_responses(body: dict[str, Any], earlier: tuple[Message, ...] = ()) -> Asked:
    """Parse a request of OpenAI's responses, after the messages of the response that it continues from."""
    messages = [Message("system", body["instructions"])] if body.get("instructions") else []
    messages += earlier
    given = body.get("input") or ()
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        kind = item.get("type", "message")
        if kind == "message":
            messages.append(Message(str(item.get("role")), _text(item.get("content"))))
        elif kind.endswith("_call"):
            messages.append(Message("assistant", f"{item.get('name', kind)}({item.get('arguments')})"))
        elif kind.endswith("_output"):
            messages.append(Message("tool", _text(item.get("output"))))
    return _asked("openai-responses", body, messages, list(body.get("tools") or ()))


def read_anthropic(body: dict[str, Any]) -> Asked:
    """Parse a request of Anthropic's messages."""
    messages = [Message("system", _text(body["system"]))] if body.get("system") else []
    messages += [
        Message(str(message.get("role")), _text(message.get("content"))) for message in body.get("messages") or ()
    ]
    return _asked("anthropic", body, messages, list(body.get("tools") or ()))


def read_google(body: dict[str, Any], model: str, *, stream: bool) -> Asked:
    """Parse a request of Google's generateContent; its URL names the model, and says whether to stream."""
    messages = [Message("system", _text(body["systemInstruction"]))] if body.get("systemInstruction") else []
    for content in body.get("contents") or ():
        role = "assistant" if content.get("role") == "model" else "user"
        messages.append(Message(role, _text(content)))
    tools = [one for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or [tool]]
    return _asked("google", {**body, "model": model, "stream": stream}, messages, tools)


def _asked(protocol: Protocol, body: dict[str, Any], messages: list[Message], tools: list[dict[str, Any]]) -> Asked:
    names = tuple(str(tool.get("name") or tool.get("type")) for tool in tools)
    return Asked(protocol, str(body.get("model") or ""), tuple(messages), names, bool(body.get("stream")), body)


def _text(content: Any) -> str:
    """Return all text of a content: a string, or parts of any protocol."""
    if isinstance(content, list):
        return "\n".join(part for part in map(_text, content) if part)
    if not isinstance(content, dict):
        return "" if content is None else str(content)
    if content.get("type") == "tool_use":
        return f"{content.get('name')}({json.dumps(content.get('input'), ensure_ascii=False)})"
    if isinstance(content.get("functionCall"), dict):
        call = content["functionCall"]
        return f"{call.get('name')}({json.dumps(call.get('args'), ensure_ascii=False)})"
    if isinstance(content.get("functionResponse"), dict):
        return "\n".join(str(part) for part in (content["functionResponse"].get("response") or {}).values())
    for name in ("text", "content", "thinking", "parts"):
        if content.get(name):
            return _text(content[name])
    return ""


def _joined(messages: list[Message]) -> str:
    return "\n\n".join(message.text for message in messages)
