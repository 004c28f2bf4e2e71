"""A call in progress, with the facts for its record; usage estimated if a report is missing or implausible."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from mleredux_llm_protocols import Kind, Tokens

from mleredux_gateway.config import Upstream
from mleredux_gateway.demand import Demand, Prompt
from mleredux_gateway.meter import Ticket
from mleredux_gateway.prices import Priced, cost_of

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
    pending = [response.get(part)] if isinstance(response, Mapping) else []
    characters = 0
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            characters += len(value)
        elif isinstance(value, list):
            pending.extend(value)
        elif isinstance(value, Mapping):
            pending.extend(item for name, item in value.items() if name not in _NO_TEXT)
    return characters


AGENT_LEFT = "The agent closed the connection."
_TIMEOUTS, _NOT_SERVED = (408, 499), (503, 529)
"""Statuses with which providers report that they did not start the call; other server errors may occur after an
answer.
"""


@dataclass
class Call:
    """A call in progress, with the facts known so far.

    Attributes:
        characters: Number of characters in the request, without images.
        tokens: Usage reported by the provider in a complete response.
        sent: Whether the request may have reached the provider.
        free: Whether it is answered from a record.
    """

    number: int
    kind: Kind
    body: dict[str, Any]
    written: bytes
    prompt: Prompt
    characters: int
    upstream: Upstream
    headers: dict[str, str]
    dropped: list[str]
    demand: Demand
    ticket: Ticket
    priced: Priced | None
    began: float = field(default_factory=time.monotonic)
    time: str = field(default_factory=lambda: datetime.now(UTC).isoformat())
    status: int | None = None
    response: Any = None
    tokens: Tokens | None = None
    error: str | None = None
    first_byte: float | None = None
    sent: bool = True
    free: bool = False

    @property
    def model(self) -> str:
        """Return the model's name as used by the agent."""
        return str(self.body["model"])

    @property
    def failed(self) -> bool:
        """Return whether the upstream did not answer completely."""
        return self.status != 200 or self.error not in (None, AGENT_LEFT)

    @property
    def down(self) -> bool:
        """Whether it failed because the provider was unreachable, overloaded or broken."""
        return self.failed and not self.free and (self.status == 200 or (self.status or 0) >= 500)

    def wait(self) -> float:
        """Return the number of seconds since it began."""
        return round(time.monotonic() - self.began, 4)

    def charge(self) -> tuple[Tokens, float | None]:
        """Return its usage and cost: as reported, or as reserved if the report is missing or implausible."""
        if self.free:
            return self.tokens or Tokens(), 0.0
        reserved, written = self.ticket.tokens, written_in(self.kind, self.response)
        if self.tokens is not None and (reserved is None or is_plausible(self.tokens, self.characters, written)):
            tokens = self.tokens
        elif not self._served():
            return Tokens(), 0.0
        elif reserved is not None:
            return reserved, None if self.priced is None else self.ticket.cost
        else:
            tokens = estimated(self.characters, written)
        return tokens, None if self.priced is None else cost_of(tokens, self.priced.price)

    def _served(self) -> bool:
        """Return whether the provider may have billed it."""
        if self.status in (None, 200):
            return self.sent
        late = self.status >= 500 or self.status in _TIMEOUTS
        return self.sent and late and self.status not in _NOT_SERVED and self.ticket.tokens is not None

    def begun(self) -> dict[str, Any]:
        """Return the line that counts if the program is killed: the whole reservation is charged."""
        tokens = self.ticket.tokens or estimated(self.characters, 0)
        cost = None if self.priced is None else max(self.ticket.cost, cost_of(tokens, self.priced.price))
        cost = 0.0 if self.free else cost
        return {
            **self._head(),
            "prompt_tokens": tokens.prompt,
            "completion_tokens": tokens.completion,
            "cost_usd": cost,
        }

    def ended(self, tokens: Tokens, cost: float | None) -> dict[str, Any]:
        """Return its line in the record, without request and response."""
        return {
            **self._head(),
            "seconds": self.wait(),
            "first_byte_seconds": self.first_byte,
            "stream": bool(self.body.get("stream")),
            "max_output": self.ticket.answer if self.ticket.tokens else None,
            "status": self.status,
            "failed": self.failed,
            "error": self.error,
            "prompt_tokens": tokens.prompt,
            "cached_tokens": tokens.cached,
            "cache_written_tokens": tokens.cache_written,
            "completion_tokens": tokens.completion,
            "estimated": tokens.estimated,
            "excess_tokens": 0 if tokens.estimated else self.ticket.excess(tokens),
            "cost_usd": cost,
        }

    def _head(self) -> dict[str, Any]:
        return {
            "call": self.number,
            "time": self.time,
            "kind": self.kind,
            "model": self.model,
            "upstream": self.upstream.name,
            "host": self.upstream.host,
            "price_table": self.priced.table if self.priced else None,
            "fields": self.dropped,
        }
