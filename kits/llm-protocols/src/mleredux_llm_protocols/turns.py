"""Convert requests and responses of all protocols to turns of a conversation."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from mleredux_llm_protocols.routes import Kind

Role = Literal["system", "user", "assistant", "tool"]
Finish = Literal["tools", "stop", "length", "content_filter"]
FINISHES: dict[Kind, dict[Finish, str]] = {
    "chat": {"tools": "tool_calls", "stop": "stop", "length": "length", "content_filter": "content_filter"},
    "responses": {"length": "max_output_tokens", "content_filter": "content_filter"},
    "messages": {"tools": "tool_use", "stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"},
    "generate": {"tools": "STOP", "stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"},
}
"""Reasons why a reply ended, by protocol; the responses protocol gives a reason only for incomplete replies."""


@dataclass(frozen=True)
class Action:
    """A tool call. `arguments` is text if it is not a JSON object."""

    id: str
    """Links the call to its result."""
    name: str
    """The name of the tool."""
    arguments: dict[str, Any] | str
    """The arguments by name, or the text that the model returned."""

    @property
    def key(self) -> str:
        """A key that is equal for equal calls, regardless of the formatting of their arguments."""
        return f"{self.name}({json.dumps(self.arguments, sort_keys=True)})"


@dataclass(frozen=True)
class Turn:
    """A message, a reply with its tool calls, or the result of a tool call (`answers` is the call's id)."""

    role: Role
    """The role of the speaker."""
    texts: tuple[str, ...]
    """The parts of the message that are text."""
    reasoning: str = ""
    """The reasoning that the model returned."""
    actions: tuple[Action, ...] = ()
    """The tool calls of a reply."""
    answers: str | None = None
    """The id of the call that the message answers."""

    @property
    def text(self) -> str:
        """All text, one part of the message per line."""
        return "\n".join(self.texts)

    @property
    def key(self) -> str:
        """A key that is equal for turns with the same text; leading and trailing whitespace is ignored."""
        parts = [self.role, self.text.strip(), *(action.key for action in self.actions)]
        return "\0".join([*parts, self.answers or ""])


def request_turns(kind: Kind, body: dict[str, Any]) -> list[Turn]:
    """Return the conversation in a request.

    Args:
        kind: The protocol of the request.
        body: The JSON body of the request.
    """
    name = {"messages": "system", "generate": "systemInstruction", "responses": "instructions"}.get(kind, "")
    turns = [Turn("system", (text_of(body[name]),))] if body.get(name) else []
    if kind == "generate":
        contents = _dicts(body.get("contents"))
        ids = {action.id for content in contents for turn in _google(content) for action in turn.actions if action.id}
        return [*turns, *(turn for content in contents for turn in _google(content, ids))]
    if kind == "responses":
        items = body.get("input")
        return [*turns, *_items([{"role": "user", "content": items}] if isinstance(items, str) else _dicts(items))]
    read = _anthropic if kind == "messages" else _chat
    return [*turns, *(turn for message in _dicts(body.get("messages")) for turn in read(message))]


def reply_turn(kind: Kind, response: Any) -> Turn | None:
    """Return the model's reply; None if there is none.

    Args:
        kind: The protocol of the response.
        response: The JSON body of the response.
    """
    if not isinstance(response, dict):
        return None
    if kind == "messages":
        turns = _anthropic({"role": "assistant", "content": response.get("content")})
    elif kind == "responses":
        turns = _items(_dicts(response.get("output")))
    else:
        first = _first(kind, response)
        if first is None:
            return None
        message = (
            {"role": "model", **(first.get("content") or {})} if kind == "generate" else first.get("message") or {}
        )
        turns = _google(message) if kind == "generate" else _chat(message)
    replies = [turn for turn in turns if turn.role == "assistant"]
    if not replies:
        return None
    return Turn(
        "assistant",
        tuple(text for turn in replies for text in turn.texts if text),
        "\n".join(turn.reasoning for turn in replies if turn.reasoning),
        tuple(action for turn in replies for action in turn.actions),
    )


def finish_of(kind: Kind, response: dict[str, Any]) -> Finish | None:
    """Return why the model's reply ended; None if the response does not state it, or uses an unknown term."""
    first = _first(kind, response) or {}
    details = response.get("incomplete_details")
    reason = {
        "chat": first.get("finish_reason"),
        "generate": first.get("finishReason"),
        "messages": response.get("stop_reason"),
        "responses": details.get("reason") if isinstance(details, dict) else None,
    }[kind]
    return next((finish for finish, word in reversed(FINISHES[kind].items()) if word == reason), None)


def tools_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tools in a request, in OpenAI's function schema."""
    tools = []
    offered = [*_dicts(body.get("tools")), *_dicts(body.get("functions"))]
    declared = [function for tool in offered for function in _dicts(tool.get("functionDeclarations"))]
    for tool in declared or offered:
        function = tool.get("function") if isinstance(tool.get("function"), dict) else tool
        assert isinstance(function, dict)
        parameters = (
            function.get("parameters") or function.get("input_schema") or function.get("parametersJsonSchema") or {}
        )
        name = str(function.get("name") or tool.get("type"))
        description = {"description": function["description"]} if function.get("description") else {}
        tools.append({"type": "function", "function": {"name": name, **description, "parameters": parameters}})
    return tools


def texts_of(content: Any) -> tuple[str, ...]:
    """Return the texts of a message's parts; parts of other kinds are named in brackets."""
    if isinstance(content, str):
        return (content,)
    if isinstance(content, list):
        return tuple(text for part in content for text in texts_of(part) if text)
    if not isinstance(content, dict):
        return ()
    for name in ("text", "content", "refusal", "parts"):
        if isinstance(content.get(name), str | list):
            return texts_of(content[name])
    return (f"[{content.get('type', 'something')}]",)


def text_of(content: Any) -> str:
    """Return all text in a message's content, one part per line."""
    return "\n".join(texts_of(content))


def _chat(message: dict[str, Any]) -> Iterator[Turn]:
    role = message.get("role")
    texts = texts_of(message.get("content"))
    if role in ("tool", "function"):
        yield Turn("tool", texts, answers=str(message.get("tool_call_id") or message.get("name") or ""))
    elif role == "assistant":
        calls = _dicts(message.get("tool_calls"))
        actions = [_action(call.get("id"), call.get("function") or call.get("custom") or {}) for call in calls]
        if isinstance(message.get("function_call"), dict):
            function = message["function_call"]
            actions.append(_action(function.get("name"), function))
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        yield Turn("assistant", texts, text_of(reasoning), tuple(actions))
    else:
        yield Turn("system" if role in ("system", "developer") else "user", texts)


def _anthropic(message: dict[str, Any]) -> Iterator[Turn]:
    """Split user messages: in this protocol they contain the results of tools."""
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else _dicts(content)
    if message.get("role") == "assistant":
        actions = [_action(b.get("id"), b) for b in blocks if b.get("type") in ("tool_use", "server_tool_use")]
        thoughts = [str(b["thinking"]) for b in blocks if b.get("type") == "thinking" and b.get("thinking")]
        texts = [text_of(b) for b in blocks if b.get("type") == "text"]
        yield Turn("assistant", tuple(texts), "\n".join(thoughts), tuple(actions))
        return
    texts = []
    for block in blocks:
        if block.get("type") == "tool_result":
            yield Turn("tool", texts_of(block.get("content")), answers=str(block.get("tool_use_id")))
        else:
            texts.append(text_of(block))
    if texts:
        yield Turn("system" if message.get("role") == "system" else "user", tuple(texts))


def _google(content: dict[str, Any], ids: Collection[str] = ()) -> Iterator[Turn]:
    """Split contents, which contain the results of tools; results are matched by name unless their id is known."""
    texts, thoughts, actions = list[str](), list[str](), list[Action]()
    for part in _dicts(content.get("parts")):
        call, result = part.get("functionCall"), part.get("functionResponse")
        if isinstance(call, dict):
            actions.append(_action(call.get("id"), {"name": call.get("name"), "input": call.get("args")}))
        elif isinstance(result, dict):
            answers = str(result["id"] if result.get("id") in ids else result.get("name"))
            yield Turn("tool", (_result(result.get("response")),), answers=answers)
        else:
            (thoughts if part.get("thought") else texts).append(text_of(part))
    if content.get("role") == "model":
        yield Turn("assistant", tuple(texts), "\n".join(thoughts), tuple(actions))
    elif texts:
        yield Turn("user", tuple(texts))


def _result(response: Any) -> str:
    """Return a tool's result: the text of `output` or `error`, where clients put it, else JSON."""
    if isinstance(response, dict) and len(response) == 1:
        [value] = response.values()
        if isinstance(value, str):
            return value
    return json.dumps(response)


def _items(items: list[dict[str, Any]]) -> Iterator[Turn]:
    """Join the items of one reply in this protocol: reasoning, messages, calls."""
    texts: list[str] = []
    thoughts: list[str] = []
    actions: list[Action] = []

    def reply() -> Iterator[Turn]:
        if texts or thoughts or actions:
            yield Turn("assistant", tuple(texts), "\n".join(thoughts), tuple(actions))
        for part in (texts, thoughts, actions):
            part.clear()

    for item in items:
        kind, role = str(item.get("type", "message")), item.get("role")
        if kind == "reasoning":
            thoughts.append(text_of(item.get("summary")) or text_of(item.get("content")))
        elif kind.endswith("_call"):
            actions.append(_action(item.get("call_id") or item.get("id"), {"name": kind, **item}))
        elif kind == "partial" or (kind == "message" and role == "assistant"):
            texts.extend(texts_of(item))
        elif kind.endswith("_output"):
            yield from reply()
            yield Turn("tool", texts_of(item.get("output")), answers=str(item.get("call_id")))
        elif kind == "message":
            yield from reply()
            yield Turn("system" if role in ("system", "developer") else "user", texts_of(item))
    yield from reply()


def _action(identity: Any, function: dict[str, Any]) -> Action:
    arguments: Any = next((function[name] for name in ("arguments", "input", "action") if name in function), {})
    if isinstance(arguments, str):
        try:
            value = json.loads(arguments) if arguments else {}
        except ValueError:
            value = arguments
        arguments = value if isinstance(value, dict) else arguments
    name = str(function.get("name"))
    return Action(str(identity or ""), name, arguments if isinstance(arguments, dict | str) else {})


def _first(kind: Kind, response: dict[str, Any]) -> dict[str, Any] | None:
    """Return the first of several replies, in the protocols that support several."""
    return next(iter(_dicts(response.get("candidates" if kind == "generate" else "choices"))), None)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
