"""Token usage, as reported by the providers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mleredux_llm_protocols.routes import Kind


@dataclass(frozen=True)
class Tokens:
    """The usage of a call.

    Attributes:
        prompt: Input tokens, including those from the provider's cache.
        cached: Input tokens read from the cache.
        cache_written: Input tokens written to the cache.
        cache_written_hour: Tokens written to the cache for an hour, which costs more.
        completion: Output tokens, including reasoning.
        estimated: Whether the numbers are an estimate rather than the provider's.
    """

    prompt: int = 0
    cached: int = 0
    cache_written: int = 0
    completion: int = 0
    estimated: bool = False
    cache_written_hour: int = 0

    @property
    def total(self) -> int:
        """The sum of input and output."""
        return self.prompt + self.completion


def reported(kind: Kind, response: Any) -> Tokens | None:
    """Parse the usage that a response reports; return None if there is none or it is invalid.

    Args:
        kind: The protocol of the response.
        response: The JSON body of the response.
    """
    name = "usageMetadata" if kind == "generate" else "usage"
    return tokens_of(kind, response.get(name)) if isinstance(response, Mapping) else None


def tokens_of(kind: Kind, usage: Any) -> Tokens | None:
    """Parse a provider's usage report; return None if there is none or it is invalid.

    Args:
        kind: The protocol of the response.
        usage: The provider's `usage` object.
    """
    if not isinstance(usage, Mapping):
        return None
    if kind == "generate":
        return _google(usage)
    prompt_name, completion_name = (
        ("prompt_tokens", "completion_tokens") if kind == "chat" else ("input_tokens", "output_tokens")
    )
    prompt, completion = _count(usage.get(prompt_name)), _count(usage.get(completion_name))
    if prompt is None or completion is None:
        return None
    if kind == "messages":
        cached = _count(usage.get("cache_read_input_tokens")) or 0
        written = _count(usage.get("cache_creation_input_tokens")) or 0
        detailed = usage.get("cache_creation")
        hour = _count(detailed.get("ephemeral_1h_input_tokens")) if isinstance(detailed, Mapping) else None
        total = prompt + cached + written
        return Tokens(total, cached, written, completion, cache_written_hour=min(hour or 0, written))
    details = usage.get("prompt_tokens_details" if kind == "chat" else "input_tokens_details")
    reported = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
    if reported is None:
        reported = _count(usage.get("prompt_cache_hit_tokens"))  # DeepSeek's name
    # Some providers (xAI, Google) count reasoning only in the total.
    completion = max(completion, (_count(usage.get("total_tokens")) or 0) - prompt)
    return Tokens(prompt, min(reported or 0, prompt), 0, completion)


def _google(usage: Mapping[str, Any]) -> Tokens | None:
    names = ("promptTokenCount", "toolUsePromptTokenCount", "candidatesTokenCount", "thoughtsTokenCount")
    request, tools, reply, reasoning = (_count(usage.get(name)) for name in names)
    if request is None:
        return None
    prompt = request + (tools or 0)
    completion = max((reply or 0) + (reasoning or 0), (_count(usage.get("totalTokenCount")) or 0) - prompt)
    return Tokens(prompt, min(_count(usage.get("cachedContentTokenCount")) or 0, prompt), 0, completion)


def _count(value: Any) -> int | None:
    """Return a token count from a provider's value, which may be anything."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1 << 40:
        return None
    return math.ceil(value)
