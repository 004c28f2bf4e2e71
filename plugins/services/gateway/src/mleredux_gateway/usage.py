"""Estimates of token usage from texts, if providers report none or an implausible one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mleredux_llm_protocols import Kind, Tokens

CHARACTERS_PER_TOKEN = 4
_NO_TEXT = (
    "id", "call_id", "type", "role", "status", "logprobs", "encrypted_content", "signature", "data",
    "thoughtSignature", "finishReason",
)  # fmt: skip
_MOST_CHARACTERS = 100
"""Maximum plausible number of characters per token in a provider's count; text has 2 to 6."""


def estimated(characters_read: int, characters_written: int) -> Tokens:
    """Estimate usage from the number of characters."""
    return Tokens(
        -(-characters_read // CHARACTERS_PER_TOKEN),
        completion=-(-characters_written // CHARACTERS_PER_TOKEN),
        estimated=True,
    )


def is_plausible(tokens: Tokens, characters_read: int, characters_written: int) -> bool:
    """Return whether a provider's count is plausible for a call with this number of characters of text."""
    counted = ((tokens.prompt, characters_read), (tokens.completion, characters_written))
    return all(count > 0 and characters <= count * _MOST_CHARACTERS for count, characters in counted)


def written_in(kind: Kind, response: Any) -> int:
    """Return the number of characters of text in a (possibly unfinished) response."""
    part = {"chat": "choices", "responses": "output", "messages": "content", "generate": "candidates"}[kind]
    left = [response.get(part)] if isinstance(response, Mapping) else []
    characters = 0
    while left:
        value = left.pop()
        if isinstance(value, str):
            characters += len(value)
        elif isinstance(value, list):
            left.extend(value)
        elif isinstance(value, Mapping):
            left.extend(item for name, item in value.items() if name not in _NO_TEXT)
    return characters
