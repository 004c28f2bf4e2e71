"""Convert requests and responses of all protocols to turns of a conversation."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from mleredux_gateway.usage import Kind

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True)
class Action:
    """A tool call. `arguments` is text if it is not a JSON object."""

    id: str
    name: str
    arguments: dict[str, Any] | str

    @property
    def key(self) -> str:
        """A key that is equal for equal calls, regardless of the formatting of their arguments."""
        return f"{self.name}({json.dumps(self.arguments, sort_keys=True)})"


@dataclass(frozen=True)
class Turn:
    """A message, a reply with its tool calls, or the result of a tool call (`answers` is the call's id)."""

    role: Role
    text: str
    reasoning: str = ""
    actions: tuple[Action, ...] = ()
    answers: str | None = None

    @property
    def key(self) -> str:
        """A key that is equal for turns that read the same: leading and trailing white space is ignored."""
        said = [self.role, self.text.strip(), *(action.key for action in self.actions)]
        return "\0".join([*said, self.answers or ""])


def asked_turns(kind: Kind, body: dict[str, Any]) -> list[Turn]:
    """Return the conversation in a request."""
    if kind == "messages":
        found = [Turn("system", text_of(body["system"]))] if body.get("system") else []
        return [*found, *(turn for message in _dicts(body.get("messages")) for turn in _anthropic(message))]
    if kind == "generate":
        found = [Turn("system", text_of(body["systemInstruction"]))] if body.get("systemInstruction") else []
        contents = _dicts(body.get("contents"))
        ids = {action.id for content in contents for turn in _google(content) for action in turn.actions if action.id}
        return [*found, *(turn for content in contents for turn in _google(content, ids))]
    if kind == "responses":
        found = [Turn("system", text_of(body["instructions"]))] if body.get("instructions") else []
        given = body.get("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else _dicts(given)
        return [*found, *_items(items)]
    return [_chat(message) for message in _dicts(body.get("messages"))]


def reply_turn(kind: Kind, response: Any) -> Turn | None:
    """Return the model's reply; None if there is none."""
    if not isinstance(response, dict):
        return None
    if kind == "messages":
        turns = list(_anthropic({"role": "assistant", "content": response.get("content")}))
    elif kind == "generate":
        candidates = _dicts(response.get("candidates"))[:1]
        turns = [turn for one in candidates for turn in _google({"role": "model", **(one.get("content") or {})})]
    elif kind == "responses":
        turns = list(_items(_dicts(response.get("output"))))
    else:
        turns = [_chat(choice.get("message") or {}) for choice in _dicts(response.get("choices"))[:1]]
    turns = [turn for turn in turns if turn.role == "assistant"]
    if not turns:
        return None
    return Turn(
        "assistant",
        "\n".join(turn.text for turn in turns if turn.text),
        "\n".join(turn.reasoning for turn in turns if turn.reasoning),
        tuple(action for turn in turns for action in turn.actions),
    )


def tools_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tools in a request, in the form of OpenAI's function schema."""
    found = []
    given = _dicts(body.get("tools"))
    declared = [one for tool in given for one in _dicts(tool.get("functionDeclarations"))]
    for tool in declared or given:
        function = tool.get("function") if isinstance(tool.get("function"), dict) else tool
        assert isinstance(function, dict)
        parameters = (
            function.get("parameters") or function.get("input_schema") or function.get("parametersJsonSchema") or {}
        )
        name = str(function.get("name") or tool.get("type"))
        description = {"description": function["description"]} if function.get("description") else {}
        found.append({"type": "function", "function": {"name": name, **description, "parameters": parameters}})
    return found


def text_of(content: Any) -> str:
    """Return all text of a content; other parts are named in brackets."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part for part in map(text_of, content) if part)
    if not isinstance(content, dict):
        return ""
    for name in ("text", "content", "refusal", "parts"):
        if isinstance(content.get(name), str | list):
            return text_of(content[name])
    return f"[{content.get('type', 'something')}]"


def _chat(message: dict[str, Any]) -> Turn:
    role = message.get("role")
    text = text_of(message.get("content"))
    if role in ("tool", "function"):
        return Turn("tool", text, answers=str(message.get("tool_call_id") or message.get("name") or ""))
    if role == "assistant":
        calls = _dicts(message.get("tool_calls"))
        actions = [_action(call.get("id"), call.get("function") or call.get("custom") or {}) for call in calls]
        if isinstance(message.get("function_call"), dict):
            function = message["function_call"]
            actions.append(_action(function.get("name"), function))
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        return Turn("assistant", text, text_of(reasoning), tuple(actions))
    return Turn("system" if role in ("system", "developer") else "user", text)


def _anthropic(message: dict[str, Any]) -> Iterator[Turn]:
    """Split user messages: in this protocol they contain the results of tools."""
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else _dicts(content)
    if message.get("role") == "assistant":
        actions = [_action(b.get("id"), b) for b in blocks if b.get("type") in ("tool_use", "server_tool_use")]
        thoughts = [str(b["thinking"]) for b in blocks if b.get("type") == "thinking" and b.get("thinking")]
        said = [text_of(b) for b in blocks if b.get("type") == "text"]
        yield Turn("assistant", "\n".join(said), "\n".join(thoughts), tuple(actions))
        return
    said = []
    for block in blocks:
        if block.get("type") == "tool_result":
            yield Turn("tool", text_of(block.get("content")), answers=str(block.get("tool_use_id")))
        else:
            said.append(text_of(block))
    if said:
        yield Turn("system" if message.get("role") == "system" else "user", "\n".join(said))


def _google(content: dict[str, Any], ids: Collection[str] = ()) -> Iterator[Turn]:
    """Split contents, which contain the results of tools; results belong to a name unless their id is known."""
    said, thoughts, actions = list[str](), list[str](), list[Action]()
    for part in _dicts(content.get("parts")):
        call, result = part.get("functionCall"), part.get("functionResponse")
        if isinstance(call, dict):
            actions.append(_action(call.get("id"), {"name": call.get("name"), "input": call.get("args")}))
        elif isinstance(result, dict):
            answers = str(result["id"] if result.get("id") in ids else result.get("name"))
            yield Turn("tool", _result(result.get("response")), answers=answers)
        else:
            (thoughts if part.get("thought") else said).append(text_of(part))
    if content.get("role") == "model":
        yield Turn("assistant", "\n".join(said), "\n".join(thoughts), tuple(actions))
    elif said:
        yield Turn("user", "\n".join(said))


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
            yield Turn("assistant", "\n".join(texts), "\n".join(thoughts), tuple(actions))
        for part in (texts, thoughts, actions):
            part.clear()

    for item in items:
        kind, role = str(item.get("type", "message")), item.get("role")
        if kind == "reasoning":
            thoughts.append(text_of(item.get("summary")) or text_of(item.get("content")))
        elif kind.endswith("_call"):
            actions.append(_action(item.get("call_id") or item.get("id"), {"name": kind, **item}))
        elif kind == "partial" or (kind == "message" and role == "assistant"):
            texts.append(text_of(item))
        elif kind.endswith("_output"):
            yield from reply()
            yield Turn("tool", text_of(item.get("output")), answers=str(item.get("call_id")))
        elif kind == "message":
            yield from reply()
            yield Turn("system" if role in ("system", "developer") else "user", text_of(item))
    yield from reply()


def _action(identity: Any, function: dict[str, Any]) -> Action:
    given: Any = next((function[name] for name in ("arguments", "input", "action") if name in function), {})
    if isinstance(given, str):
        try:
            read = json.loads(given) if given else {}
        except ValueError:
            read = given
        given = read if isinstance(read, dict) else given
    return Action(str(identity or ""), str(function.get("name")), given if isinstance(given, dict | str) else {})


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
