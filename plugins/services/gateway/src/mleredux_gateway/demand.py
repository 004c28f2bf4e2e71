"""The maximum usage of a call, and the limit that the gateway writes into it."""

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
"""Number of tokens below which an answer is useless; the minimum accepted by OpenAI's responses API."""
_LEAST_THINKING = 1024
_FRAME, _TOOLS, _IMAGE = 256, 1024, 50_000
"""Tokens that providers add: to any prompt; to a prompt with tools, and for each built-in tool; and at most per
image.
"""
_MAXIMA = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_REASONING = re.compile(r"(.*/)?(o\d|gpt-[5-9])")
_OWN_HOSTS = ("openai.com", "azure.com")
_REMEMBERED, _REMEMBERED_SIZE = 4, 4 << 20


@dataclass(frozen=True)
class Demand:
    """An upper bound on a call's usage.

    Attributes:
        prompt: Number of input tokens.
        answer: Tokens per answer including reasoning: the maximum of the request, or else of the model.
        thinking: The part for reasoning: the request's budget, which providers may bill in addition to its maximum.
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
        """Return the smallest number of answer tokens with which the call is still useful."""
        return min(self.answer, 2 * _LEAST_THINKING + LEAST_ANSWER if self.thinking else LEAST_ANSWER)


def demand_of(body: Mapping[str, Any], prompt: int, known: int | None, default: int, *, hour: bool) -> Demand:
    """Return the demand of a screened request.

    Args:
        body: The request.
        prompt: Upper bound on its input tokens.
        known: Maximum number of tokens in an answer of its model, if known.
        default: Number of tokens in an answer, if this is unknown and the request specifies no maximum.
        hour: Whether it caches the prompt for an hour.
    """
    named = [value for value in (count(body.get(name)) for name in _MAXIMA) if value is not None]
    answer = min(max(named), known or max(named)) if named else known or default
    thinking = body.get("thinking")
    budget = (count(thinking.get("budget_tokens")) or 0) if isinstance(thinking, dict) else 0
    return Demand(prompt, answer + budget, budget, count(body.get("n")) or 1, hour)


def google_bounds(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a request that limit its answers, by their names in the other protocols."""
    config = body.get("generationConfig")
    config = config if isinstance(config, dict) else {}
    # This maximum includes reasoning.
    return {"max_output_tokens": config.get("maxOutputTokens"), "n": config.get("candidateCount")}


def limits_of(kind: Kind, body: dict[str, Any], demand: Demand, granted: int, upstream: Upstream) -> dict[str, Any]:
    """Return the fields that state the granted maximum, exactly where the request's provider honors it.

    Args:
        granted: Number of tokens per answer.

    Returns:
        New values; None for fields to be removed.
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
    """Return the fields of Google's protocol that state a maximum number of tokens."""
    config = dict(body.get("generationConfig") or {})
    thinking = config.get("thinkingConfig") or {}
    if (count(thinking.get("thinkingBudget")) or 0) > granted:
        config["thinkingConfig"] = {**thinking, "thinkingBudget": granted // 2}
    return {"generationConfig": {**config, "maxOutputTokens": granted}}


def changed(body: dict[str, Any], written: bytes, changes: dict[str, Any]) -> bytes:
    """Return a serialized request with changed fields; None removes a field."""
    changes = {name: value for name, value in changes.items() if name not in body or body[name] != value}
    if not changes:
        return written
    if not set(changes) & set(body):  # avoids serializing a long conversation again
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
    """The input of a request, and the bound on its tokens without those of earlier responses to which it refers.

    Attributes:
        size: The bound from its bytes alone.
        plain: The request without markers for the provider's cache.
        marks: Number of bytes in these markers.
    """

    tokens: int
    size: int
    plain: dict[str, Any]
    marks: int


class Prompts:
    """Computes bounds on the input tokens of requests.

    No tokenizer in use produces more tokens than there are bytes of UTF-8, and the syntax of a request (names, quotes)
    has more bytes than the provider's markup has tokens. If a request continues an earlier one with a known number of
    tokens, only the bytes that it adds are counted.
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[Prompt, int]] = deque(maxlen=_REMEMBERED)

    def bound(self, body: dict[str, Any], written: bytes, screened: Screened) -> Prompt:
        """Return the bound for a request."""
        data = written
        if b"\\u" in data:
            data = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
        tools = [tool for tool in body.get("tools") or body.get("functions") or () if isinstance(tool, dict)]
        bare = sum(not {"function", "parameters", "input_schema", "functionDeclarations"} & set(tool) for tool in tools)
        added = _FRAME + (_TOOLS if tools else 0) + bare * _TOOLS
        size = len(data) - screened.image_characters + screened.images * _IMAGE + added
        marks: list[int] = []
        plain = _without_marks(body, marks) if b'"cache_control"' in written else body
        # The earlier markers are excluded, as if all current markers were new.
        known = (
            tokens + size - (earlier.size - earlier.marks) + _FRAME
            for earlier, tokens in self._seen
            if _continues(plain, earlier.plain)
        )
        return Prompt(min((size, *known)), size, plain, sum(marks))

    def learn(self, prompt: Prompt, tokens: int) -> None:
        """Remember a request whose tokens were counted by the provider."""
        if prompt.size <= _REMEMBERED_SIZE and not {"previous_response_id", "context_management"} & set(prompt.plain):
            self._seen.append((prompt, tokens))


class Received:
    """Responses of a provider that stores them, received by the run: their ids, and the tokens that they add to a
    prompt."""

    def __init__(self) -> None:
        self._tokens: dict[str, int] = {}
        self._written: dict[str, int] = {}

    def __contains__(self, identity: str) -> bool:
        return identity in self._tokens

    def add(self, request: Any, response: Any, tokens: Tokens) -> None:
        """Remember a response of OpenAI's responses API, and its parts."""
        if not isinstance(response, dict) or not isinstance(response.get("id"), str):
            return
        earlier = request.get("previous_response_id") if isinstance(request, dict) else None
        written = tokens.completion + self._written.get(str(earlier), 0)
        self._tokens[response["id"]], self._written[response["id"]] = tokens.prompt + written, written
        for item in response.get("output") or ():
            if isinstance(item, dict) and isinstance(item.get("id"), str):
                self._tokens[item["id"]] = tokens.completion

    def tokens(self, identities: Iterable[str]) -> int:
        """Return a bound on the tokens that these responses add to a prompt."""
        return sum(self._tokens[identity] for identity in identities)


def _continues(body: dict[str, Any], earlier: dict[str, Any]) -> bool:
    """Return whether a request only extends the conversation of an earlier one, or changes its maximum."""
    names = {*body, *earlier} - set(_MAXIMA)
    for name in names:
        new, old = body.get(name), earlier.get(name)
        if name in ("messages", "input", "contents") and isinstance(new, list) and isinstance(old, list):
            new = new[: len(old)]
        if new != old:
            return False
    return True


def _without_marks(value: Any, marks: list[int]) -> Any:
    """Return a copy without markers for the provider's cache, which clients move; append the bytes of each to
    `marks`."""
    if isinstance(value, list):
        return [_without_marks(part, marks) for part in value]
    if not isinstance(value, dict):
        return value
    if "cache_control" in value:
        marks.append(len(json.dumps({"cache_control": value["cache_control"]})))
    return {name: _without_marks(part, marks) for name, part in value.items() if name != "cache_control"}
