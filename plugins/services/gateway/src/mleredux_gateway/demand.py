"""The most that a call can use, and the maximum that the gateway writes into it."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mleredux_llm_protocols import Kind, Tokens

from mleredux_gateway.config import Upstream
from mleredux_gateway.screening import Screened, count

LEAST_ANSWER = 16
"""Tokens below which an answer is useless; the least that OpenAI's responses take."""
_LEAST_THINKING = 1024
_FRAME, _TOOLS, _IMAGE = 256, 1024, 50_000
"""Tokens that providers add: to any prompt, to one with tools and per tool of their own, at most per image."""
_MAXIMA = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_REASONING = re.compile(r"(.*/)?(o\d|gpt-[5-9])")
_OWN_HOSTS = ("openai.com", "azure.com")
_REMEMBERED, _REMEMBERED_SIZE = 4, 4 << 20


@dataclass(frozen=True)
class Demand:
    """An upper bound of a call's usage.

    Attributes:
        prompt: Tokens of the input.
        answer: Tokens of each answer, with its reasoning: the request's maximum, else the model's.
        thinking: Of these, the request's budget for reasoning: providers may bill it besides its maximum.
        choices: Number of answers.
        hour: Whether the prompt may be cached for an hour, which costs more.
    """

    prompt: int
    answer: int
    thinking: int = 0
    choices: int = 1
    hour: bool = False

    @property
    def least(self) -> int:
        """Tokens of an answer with which the call is still useful."""
        return min(self.answer, 2 * _LEAST_THINKING + LEAST_ANSWER if self.thinking else LEAST_ANSWER)


def demand_of(body: Mapping[str, Any], prompt: int, known: int | None, default: int, *, hour: bool) -> Demand:
    """Return the demand of a screened request.

    Args:
        body: The request.
        prompt: Bound of its input tokens.
        known: Tokens that an answer of its model has at most.
        default: Tokens of an answer, where neither this is known nor the request names a maximum.
        hour: Whether it caches for an hour.
    """
    named = [value for value in (count(body.get(name)) for name in _MAXIMA) if value is not None]
    answer = min(max(named), known or max(named)) if named else known or default
    thinking = body.get("thinking")
    budget = (count(thinking.get("budget_tokens")) or 0) if isinstance(thinking, dict) else 0
    return Demand(prompt, answer + budget, budget, count(body.get("n")) or 1, hour)


def google_bounds(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a request that bound its answers, by their names in the other protocols."""
    config = body.get("generationConfig")
    config = config if isinstance(config, dict) else {}
    # Its maximum includes reasoning.
    return {"max_output_tokens": config.get("maxOutputTokens"), "n": config.get("candidateCount")}


def limits_of(kind: Kind, body: dict[str, Any], demand: Demand, granted: int, upstream: Upstream) -> dict[str, Any]:
    """Return the fields by which a request states the granted maximum where its provider observes it, and only there.

    Args:
        granted: Tokens of each answer.

    Returns:
        New values; None for a field to be removed.
    """
    if kind == "generate":
        return _limited(body, granted)
    changes: dict[str, Any] = dict.fromkeys(name for name in _MAXIMA if name in body)
    thinking = demand.thinking
    if thinking and granted < demand.answer:
        thinking = min(thinking, max(_LEAST_THINKING, granted // 3))
        changes["thinking"] = {**body["thinking"], "budget_tokens": thinking}
    return {**changes, _field_of(kind, str(body["model"]), upstream): granted - thinking}


def _limited(body: Mapping[str, Any], granted: int) -> dict[str, Any]:
    """Return the fields of Google's protocol that state a maximum of tokens."""
    config = dict(body.get("generationConfig") or {})
    thinking = config.get("thinkingConfig") or {}
    if (count(thinking.get("thinkingBudget")) or 0) > granted:
        config["thinkingConfig"] = {**thinking, "thinkingBudget": granted // 2}
    return {"generationConfig": {**config, "maxOutputTokens": granted}}


def changed(body: dict[str, Any], written: bytes, changes: dict[str, Any]) -> bytes:
    """Return a serialized request with other values of fields; None removes a field."""
    changes = {name: value for name, value in changes.items() if name not in body or body[name] != value}
    if not changes:
        return written
    if not set(changes) & set(body):  # a long conversation is not serialized again
        return written[:-1] + b", " + json.dumps(changes).encode()[1:]
    return json.dumps({name: value for name, value in {**body, **changes}.items() if value is not None}).encode()


def _field_of(kind: Kind, model: str, upstream: Upstream) -> str:
    if kind != "chat":
        return "max_tokens" if kind == "messages" else "max_output_tokens"
    host = upstream.host.partition(":")[0]
    newer = _REASONING.match(upstream.config.rename.get(model, model)) or host.endswith(_OWN_HOSTS)
    return "max_completion_tokens" if newer else "max_tokens"


@dataclass(frozen=True)
class Prompt:
    """A request's input, and the bound of its tokens without what it refers to.

    Attributes:
        size: The bound by its bytes alone.
        plain: The request without marks for the provider's cache.
        marks: Bytes of these marks.
    """

    tokens: int
    size: int
    plain: dict[str, Any]
    marks: int


class Prompts:
    """Bounds the input tokens of requests.

    No tokenizer in use makes more tokens than there are bytes of UTF-8, and the form of a request (names, quotes) has
    more bytes than a provider's marks have tokens. If a request continues an earlier one whose tokens are known, only
    the bytes of what it adds are counted.
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[Prompt, int]] = deque(maxlen=_REMEMBERED)

    def bound(self, body: dict[str, Any], written: bytes, screened: Screened) -> Prompt:
        """Return the bound of a request."""
        data = written
        if b"\\u" in data:
            data = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
        tools = [tool for tool in body.get("tools") or body.get("functions") or () if isinstance(tool, dict)]
        bare = sum(not {"function", "parameters", "input_schema", "functionDeclarations"} & set(tool) for tool in tools)
        added = _FRAME + (_TOOLS if tools else 0) + bare * _TOOLS
        size = len(data) - screened.image_characters + screened.images * _IMAGE + added
        marks: list[int] = []
        plain = _without_marks(body, marks) if b'"cache_control"' in written else body
        # The earlier marks are left out, as if all that there are now were new.
        known = (
            tokens + size - (earlier.size - earlier.marks) + _FRAME
            for earlier, tokens in self._seen
            if _continues(plain, earlier.plain)
        )
        return Prompt(min((size, *known)), size, plain, sum(marks))

    def learn(self, prompt: Prompt, tokens: int) -> None:
        """Remember a request whose tokens the provider has counted."""
        if prompt.size <= _REMEMBERED_SIZE and not {"previous_response_id", "context_management"} & set(prompt.plain):
            self._seen.append((prompt, tokens))


class Received:
    """What the run received in responses that a provider stores: their ids, and how much they add to a prompt."""

    def __init__(self) -> None:
        self._tokens: dict[str, int] = {}
        self._written: dict[str, int] = {}

    def __contains__(self, identity: str) -> bool:
        return identity in self._tokens

    def add(self, request: Any, response: Any, tokens: Tokens) -> None:
        """Remember a response of OpenAI's responses, and its parts."""
        if not isinstance(response, dict) or not isinstance(response.get("id"), str):
            return
        earlier = request.get("previous_response_id") if isinstance(request, dict) else None
        written = tokens.completion + self._written.get(str(earlier), 0)
        self._tokens[response["id"]], self._written[response["id"]] = tokens.prompt + written, written
        for item in response.get("output") or ():
            if isinstance(item, dict) and isinstance(item.get("id"), str):
                self._tokens[item["id"]] = tokens.completion

    def tokens(self, identities: Iterable[str]) -> int:
        """Return a bound of what these add to a prompt."""
        return sum(self._tokens[identity] for identity in identities)


def _continues(body: dict[str, Any], earlier: dict[str, Any]) -> bool:
    """Return whether a request only adds to the end of an earlier one's conversation, or changes its maximum."""
    names = {*body, *earlier} - set(_MAXIMA)
    for name in names:
        new, old = body.get(name), earlier.get(name)
        if name in ("messages", "input", "contents") and isinstance(new, list) and isinstance(old, list):
            new = new[: len(old)]
        if new != old:
            return False
    return True


def _without_marks(value: Any, marks: list[int]) -> Any:
    """Return a copy without marks for the provider's cache, which clients move; add the bytes of each to `marks`."""
    if isinstance(value, list):
        return [_without_marks(part, marks) for part in value]
    if not isinstance(value, dict):
        return value
    if "cache_control" in value:
        marks.append(len(json.dumps({"cache_control": value["cache_control"]})))
    return {name: _without_marks(part, marks) for name, part in value.items() if name != "cache_control"}
