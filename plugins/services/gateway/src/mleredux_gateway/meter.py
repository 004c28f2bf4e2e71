"""Count a run's calls, and enforce its budgets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mleredux.plugin.agent import Limits
from mleredux.plugin.artifact import LlmUse

from mleredux_gateway.usage import Tokens


class Refused(Exception):
    """A call that is not forwarded.

    Attributes:
        reason: The budget that is used up, or `no_price`.
        message: One sentence for the agent.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


@dataclass(eq=False)
class Ticket:
    """A call in progress, and its reservation."""

    tokens: int
    cost: float


@dataclass
class _Totals:
    calls: int = 0
    failed: int = 0
    refused: int = 0
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    cost: float = 0.0
    unpriced: bool = False
    models: dict[str, None] = field(default_factory=dict)
    hosts: dict[str, None] = field(default_factory=dict)
    exhausted: str | None = None


class Meter:
    """Admits calls while budget remains, and adds up their usage. Use it from one event loop.

    A call is admitted if usage is below every limit. If it could exceed one together with the calls in
    progress, it waits for them. So a limit can be exceeded by one call only, or by the difference between the
    reservations and the actual usage of calls that were in progress together.

    Args:
        limits: The run's limits.
        exhausted: Called once, with the first exhausted budget.
    """

    def __init__(self, limits: Limits, exhausted: Callable[[str], None]) -> None:
        self._limits = limits
        self._told = exhausted
        self._open: set[Ticket] = set()
        self._sum = _Totals()
        self._changed = asyncio.Condition()

    async def admit(self, expected: Tokens, cost: float | None) -> Ticket:
        """Reserve budget for a call.

        Args:
            expected: Tokens that it may use.
            cost: USD that it may cost, None if the model has no price.

        Raises:
            Refused: A budget is exhausted, or can't be enforced.
        """
        if cost is None and self._limits.llm_cost_usd is not None:
            self._sum.refused += 1
            raise Refused("no_price", "This model has no price here, and the run's cost is limited; use another model.")
        ticket = Ticket(expected.total, cost or 0.0)
        async with self._changed:
            await self._changed.wait_for(lambda: self._spent() is not None or not self._must_wait(ticket))
            if (budget := self._spent()) is not None:
                self._sum.refused += 1
                if self._sum.exhausted is None:
                    self._sum.exhausted = budget
                    self._told(budget)
                limit = getattr(self._limits, budget)
                raise Refused(budget, f"The run's budget {budget} of {limit:g} is used up: no more calls are allowed.")
            self._open.add(ticket)
            self._sum.calls += 1
            return ticket

    async def settle(self, ticket: Ticket, tokens: Tokens, cost: float | None, **facts: Any) -> None:
        """Replace a call's reservation by its actual usage."""
        async with self._changed:
            self._open.discard(ticket)
            self._add(tokens, cost, **facts)
            self._changed.notify_all()

    def refuse(self) -> None:
        """Count a call that was not forwarded for another reason."""
        self._sum.refused += 1

    def restore(self, call: dict[str, Any]) -> None:
        """Count a call of an earlier attempt, from the record."""
        if reason := call.get("refused"):
            self._sum.refused += 1
            if hasattr(self._limits, reason) and self._sum.exhausted is None:
                self._sum.exhausted = reason
            return
        self._sum.calls += 1
        tokens = Tokens(
            call["prompt_tokens"], call["cached_tokens"], call.get("cache_written_tokens", 0), call["completion_tokens"]
        )
        self._add(tokens, call["cost_usd"], failed=call["failed"], model=call["model"], host=call["host"])

    def use(self) -> LlmUse:
        """The usage so far."""
        total = self._sum
        return LlmUse(
            calls=total.calls,
            failed=total.failed,
            refused=total.refused,
            prompt_tokens=total.prompt,
            cached_tokens=total.cached,
            completion_tokens=total.completion,
            cost_usd=None if total.unpriced else round(total.cost, 9),
            models=tuple(total.models),
            hosts=tuple(total.hosts),
            exhausted=total.exhausted,
        )

    def left(self) -> dict[str, Any]:
        """Return usage and limit of each budget, for the agent."""
        used = {
            "llm_calls": self._sum.calls,
            "llm_tokens": self._sum.prompt + self._sum.completion,
            "llm_cost_usd": None if self._sum.unpriced else round(self._sum.cost, 6),
        }
        return {name: {"used": value, "limit": getattr(self._limits, name)} for name, value in used.items()}

    def _spent(self) -> str | None:
        """Return the budget that is definitely exhausted, regardless of calls in progress."""
        limits, total = self._limits, self._sum
        if limits.llm_calls is not None and total.calls >= limits.llm_calls:
            return "llm_calls"
        if limits.llm_tokens is not None and total.prompt + total.completion >= limits.llm_tokens:
            return "llm_tokens"
        if limits.llm_cost_usd is not None and total.cost >= limits.llm_cost_usd:
            return "llm_cost_usd"
        return None

    def _must_wait(self, ticket: Ticket) -> bool:
        """Return whether a call could exceed a budget together with those in progress."""
        if not self._open:
            return False
        limits, total = self._limits, self._sum
        together = [ticket, *self._open]
        tokens = total.prompt + total.completion + sum(one.tokens for one in together)
        cost = total.cost + sum(one.cost for one in together)
        return (limits.llm_tokens is not None and tokens > limits.llm_tokens) or (
            limits.llm_cost_usd is not None and cost > limits.llm_cost_usd
        )

    def _add(self, tokens: Tokens, cost: float | None, *, failed: bool, model: str, host: str) -> None:
        total = self._sum
        total.failed += failed
        total.prompt += tokens.prompt
        total.cached += tokens.cached
        total.completion += tokens.completion
        total.cost += cost or 0.0
        total.unpriced |= cost is None
        total.models[model] = total.hosts[host] = None
