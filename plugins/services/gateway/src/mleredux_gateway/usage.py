"""Token usage, as reported by the providers, or estimated if they report none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["chat", "responses", "messages"]
"""OpenAI's chat completions, OpenAI's responses, Anthropic's messages."""
CHARACTERS_PER_TOKEN = 4
DEFAULT_COMPLETION = 1024
"""Tokens reserved for a response whose request sets no maximum."""
_MAXIMA = ("max_completion_tokens", "max_output_tokens", "max_tokens")


@dataclass(frozen=True)
class Tokens:
    """The usage of a call.

    Attributes:
        prompt: Input tokens, including those from the provider's cache.
        cached: Of these, read from the cache.
        cache_written: Of these, written to the cache.
        completion: Output tokens, including reasoning.
        estimated: Whether the numbers are estimated from the number of characters.
    """

    prompt: int = 0
    cached: int = 0
    cache_written: int = 0
    completion: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        """The sum of input and output."""
        return self.prompt + self.completion


def tokens_of(kind: Kind, usage: Any) -> Tokens | None:
    """Parse a provider's report; return None if there is none or it is invalid."""
    if not isinstance(usage, Mapping):
        return None
    prompt_name, completion_name = (
        ("prompt_tokens", "completion_tokens") if kind == "chat" else ("input_tokens", "output_tokens")
    )
    prompt, completion = _count(usage.get(prompt_name)), _count(usage.get(completion_name))
    if prompt is None and completion is None:
        return None
    if kind == "messages":
        cached = _count(usage.get("cache_read_input_tokens")) or 0
        written = _count(usage.get("cache_creation_input_tokens")) or 0
        return Tokens((prompt or 0) + cached + written, cached, written, completion or 0)
    details = usage.get("prompt_tokens_details" if kind == "chat" else "input_tokens_details")
    reported = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
    if reported is None:
        reported = _count(usage.get("prompt_cache_hit_tokens"))  # DeepSeek's name
    return Tokens(prompt or 0, min(reported or 0, prompt or 0), 0, completion or 0)


def estimated(characters_read: int, characters_written: int) -> Tokens:
    """Estimate usage from the number of characters."""
    return Tokens(
        -(-characters_read // CHARACTERS_PER_TOKEN),
        completion=-(-characters_written // CHARACTERS_PER_TOKEN),
        estimated=True,
    )


def expected(body: Mapping[str, Any], size: int) -> Tokens:
    """Return the maximum usage of a request, before it is sent.

    Args:
        body: The request.
        size: Its length in characters.
    """
    asked = [value for value in (_count(body.get(name)) for name in _MAXIMA) if value is not None]
    choices = _count(body.get("n")) or 1
    completion = (max(asked) if asked else DEFAULT_COMPLETION) * choices
    return Tokens(-(-size // CHARACTERS_PER_TOKEN), completion=completion, estimated=True)


def written_in(kind: Kind, response: Any) -> int:
    """Return the number of characters in a (possibly unfinished) response."""
    part = {"chat": "choices", "responses": "output", "messages": "content"}[kind]
    found = response.get(part) if isinstance(response, Mapping) else None
    return len(json.dumps(found, ensure_ascii=False)) if found else 0


def _count(value: Any) -> int | None:
    """Return a number of tokens; a provider's value may be anything."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else None
