"""Count a run's calls, and enforce its budgets, so that none is ever exceeded."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from mleredux.models.formats import counted, plain
from mleredux.plugin.agent import Limits
from mleredux.plugin.artifact import LlmUse
from mleredux_llm_protocols import Tokens

from mleredux_gateway.config import Price
from mleredux_gateway.demand import Demand
from mleredux_gateway.prices import highest

_COMFORTABLE = 8192
"""Number of available answer tokens with which a call that requests more does not wait for other calls."""
_UNKNOWN_AT_ONCE = 4
"""Maximum number of concurrent calls to a host that has not yet been seen to honor the maximum of an answer."""
GAP = 120.0
"""Maximum seconds between a failed call and the next one that count as waiting for the provider."""
_MOST_REFUSED_FIELDS = 50
_ROUNDING = 1 - 1e-9


class Refused(Exception):
    """A call that is not forwarded.

    Attributes:
        reason: The budget that is used up, or `no_price`.
        message: A sentence for the agent.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


@dataclass(eq=False)
class Ticket:
    """A call in progress, and its reservation.

    Attributes:
        tokens: Its maximum usage; None if neither tokens nor cost are limited, so that nothing is reserved.
        cost: Its maximum cost in USD.
        answer: The maximum tokens per answer, which must be sent to the provider.
        host: The provider.
    """

    tokens: Tokens | None
    cost: float
    answer: int
    host: str = ""

    def excess(self, used: Tokens) -> int:
        """Return the number of answer tokens beyond the maximum that was sent to the provider."""
        return max(used.completion - self.tokens.completion, 0) if self.tokens is not None else 0


@dataclass
class _Totals:
    calls: int = 0
    failed: int = 0
    refused: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: bool = False
    models: dict[str, None] = field(default_factory=dict)
    hosts: dict[str, None] = field(default_factory=dict)
    exhausted: str | None = None
    refused_fields: dict[str, int] = field(default_factory=dict)
    price_tables: dict[str, None] = field(default_factory=dict)
    excess_tokens: int = 0


@dataclass
class Outages:
    """Sums the seconds from failed calls to the next successful one. The times are of one monotonic clock.

    An agent that does other work after a failed call waits for `GAP` seconds at most, and all pauses together last at
    most as long as the run's time limit, so that no agent can prolong its run by provoking errors.

    Attributes:
        most: Maximum total in seconds.
        total: The seconds in ended calls and the pauses between them.
    """

    most: float
    total: float = 0.0
    _failed: float | None = None

    def note(self, began: float, ended: float, *, down: bool) -> None:
        """Note a call that ended, and whether it failed because the provider was down."""
        if self._failed is not None:
            self.total += min(max(began - self._failed, 0.0), GAP)
            began = max(began, self._failed)
        if down:
            self.total += max(ended - began, 0.0)
        self._failed = ended if down else None

    def seconds(self, now: float) -> float:
        """Return the seconds up to now."""
        waiting = min(now - self._failed, GAP) if self._failed is not None else 0.0
        return min(self.total + waiting, self.most)


class Meter:
    """Admits calls that cannot exceed a budget, and sums their usage. It must be used from a single event loop.

    Before a call is forwarded, its maximum usage is reserved; afterwards, the reservation is replaced by its actual
    usage. If less is left than a call requests, the maximum of its answers is lowered; if that is inconveniently little
    while others are in progress, the call waits for them. So usage plus reservations never exceed a budget, provided
    that providers honor the maximum of an answer. Until a provider has been seen to do so, only a few concurrent calls
    are forwarded to it; if it does not, only one at a time.

    Args:
        limits: The run's limits.
        exhausted: Called once, with the first budget for which a call was refused.
        overrun: Called once, with a sentence, for each host that generates more than the maximum.
    """

    def __init__(
        self, limits: Limits, exhausted: Callable[[str], None], overrun: Callable[[str], None] = lambda _said: None
    ) -> None:
        self._limits = limits
        self._notify, self._notify_overrun = exhausted, overrun
        self._observes: dict[str, bool] = {}
        self._open: set[Ticket] = set()
        self._sum = _Totals()
        self._changed = asyncio.Condition()
        self.outages = Outages(limits.time_limit)
        self._paused = 0.0

    async def admit(self, demand: Demand, price: Price | None, host: str = "") -> Ticket:
        """Reserve budget for a call.

        Args:
            demand: Its maximum usage.
            price: The price of its model; None if unknown.
            host: The provider.

        Raises:
            Refused: A budget is exhausted, too little of it is left for this call, or it cannot be enforced.
        """
        limits = self._limits
        if price is None and limits.llm_cost_usd is not None:
            self._sum.refused += 1
            raise Refused(
                "no_price",
                "The run's cost is limited, but this model has no price: add [prices.NAME] to the gateway's file, or "
                "limit calls or tokens instead of the cost.",
            )
        async with self._changed:
            while True:
                if limits.llm_calls is not None and self._sum.calls >= limits.llm_calls:
                    self._refuse("llm_calls", "is used up: no more calls are allowed")
                ever, budget = self._most(demand, price, [])
                if ever < demand.least:
                    self._refuse(
                        budget, f"has too little left for this call, with up to {demand.prompt:,} input tokens"
                    )
                most, _ = self._most(demand, price, self._open)
                if self._is_full(host):
                    await self._changed.wait()
                    continue
                if most >= min(demand.answer, _COMFORTABLE) or (not self._open and most >= demand.least):
                    break
                await self._changed.wait()
            answer = int(min(demand.answer, most))
            tokens = Tokens(demand.prompt, completion=answer * demand.choices, estimated=True)
            bounded = limits.llm_tokens is not None or limits.llm_cost_usd is not None
            read, written = highest(price, demand.prompt, hour=demand.hour) if price is not None else (0.0, 0.0)
            cost = tokens.prompt * read + tokens.completion * written
            ticket = Ticket(tokens if bounded else None, cost if bounded else 0.0, answer, host)
            self._open.add(ticket)
            self._sum.calls += 1
            return ticket

    async def settle(self, ticket: Ticket, tokens: Tokens, cost: float | None, **facts: Any) -> None:
        """Replace a call's reservation with its actual usage."""
        async with self._changed:
            self._open.discard(ticket)
            self._watch(ticket, tokens)
            self._add(tokens, cost, **facts)
            self._changed.notify_all()

    def _is_full(self, host: str) -> bool:
        """Return whether a provider already has as many bounded calls in progress as is safe if it ignores the
        maximum."""
        most = {True: math.inf, False: 1, None: _UNKNOWN_AT_ONCE}[self._observes.get(host)]
        return sum(ticket.host == host and ticket.tokens is not None for ticket in self._open) >= most

    def _watch(self, ticket: Ticket, tokens: Tokens) -> None:
        """Determine whether a provider honors the maximum of an answer."""
        if ticket.tokens is None or tokens.estimated:
            return
        excess = ticket.excess(tokens)
        self._sum.excess_tokens += excess
        if not excess:
            if tokens.completion == ticket.tokens.completion:  # a shorter answer is not conclusive
                self._observes.setdefault(ticket.host, True)
        elif self._observes.get(ticket.host) is not False:
            self._observes[ticket.host] = False
            self._notify_overrun(
                f"{ticket.host or 'The provider'} returned {counted(excess, 'token')} more than a response's maximum, "
                "which the budget relies on: from now on, calls to it are forwarded one at a time."
            )

    def refuse(self) -> None:
        """Count a call that was not forwarded for another reason."""
        self._sum.refused += 1

    def note(self, field: str) -> None:
        """Note a field of a request that was not forwarded."""
        noted = self._sum.refused_fields
        if field in noted or len(noted) < _MOST_REFUSED_FIELDS:
            noted[field] = noted.get(field, 0) + 1

    def restore(self, call: dict[str, Any]) -> None:
        """Count a call of an earlier attempt, from the record."""
        for name in call.get("fields", ()):
            self.note(name)
        if reason := call.get("refused"):
            self._sum.refused += 1
            if hasattr(self._limits, reason) and self._sum.exhausted is None:
                self._sum.exhausted = reason
            return
        self._sum.calls += 1
        tokens = Tokens(
            call["prompt_tokens"], call["cached_tokens"], call.get("cache_written_tokens", 0), call["completion_tokens"]
        )
        self._sum.excess_tokens += call.get("excess_tokens", 0)
        self.outages.total = max(self.outages.total, call.get("outage_seconds", 0.0))
        names = ("failed", "model", "host")
        self._add(tokens, call["cost_usd"], table=call.get("price_table"), **{name: call[name] for name in names})

    def use(self) -> LlmUse:
        """Return the usage so far."""
        counted = {name: value for name, value in vars(self._sum).items() if name in LlmUse.model_fields}
        listed = {name: tuple(counted[name]) for name in ("models", "hosts", "price_tables")}
        cost = None if self._sum.unpriced else round(self._sum.cost_usd, 9)
        return LlmUse(**{**counted, **listed, "cost_usd": cost, "outage_seconds": self._paused})

    def paused(self) -> float:
        """Return the number of seconds for which the run's clock has been paused because providers were down."""
        self._paused = round(self.outages.seconds(time.monotonic()), 3)
        return self._paused

    def left(self) -> dict[str, Any]:
        """Return usage and limit of each budget, for the agent."""
        used = {
            "llm_calls": self._sum.calls,
            "llm_tokens": self._sum.prompt_tokens + self._sum.completion_tokens,
            "llm_cost_usd": None if self._sum.unpriced else round(self._sum.cost_usd, 6),
        }
        return {name: {"used": value, "limit": getattr(self._limits, name)} for name, value in used.items()}

    def _most(self, demand: Demand, price: Price | None, others: Iterable[Ticket]) -> tuple[float, str]:
        """Return the tokens available for each answer of a call alongside other calls, and the budget that limits
        them."""
        limits, total, most = self._limits, self._sum, (math.inf, "")
        reserved = list(others)
        if limits.llm_tokens is not None:
            used = total.prompt_tokens + total.completion_tokens
            used += sum(ticket.tokens.total for ticket in reserved if ticket.tokens)
            most = min(most, ((limits.llm_tokens - used - demand.prompt) // demand.choices, "llm_tokens"))
        if limits.llm_cost_usd is not None and price is not None:
            read, written = highest(price, demand.prompt, hour=demand.hour)
            remaining = limits.llm_cost_usd * _ROUNDING - total.cost_usd - sum(ticket.cost for ticket in reserved)
            remaining -= demand.prompt * read
            answers = -1.0 if remaining < 0 else math.inf if written <= 0 else remaining / written // demand.choices
            most = min(most, (answers, "llm_cost_usd"))
        return most

    def _refuse(self, budget: str, why: str) -> NoReturn:
        self._sum.refused += 1
        if self._sum.exhausted is None:
            self._sum.exhausted = budget
            self._notify(budget)
        amount = plain(getattr(self._limits, budget), grouped=True)
        amount = f"${amount}" if budget == "llm_cost_usd" else f"{amount} {budget.removeprefix('llm_')}"
        raise Refused(budget, f"The run's budget of {amount} for language models ({budget}) {why}.")

    def _add(
        self, tokens: Tokens, cost: float | None, *, failed: bool, model: str, host: str, table: str | None
    ) -> None:
        total = self._sum
        total.failed += failed
        total.prompt_tokens += tokens.prompt
        total.cached_tokens += tokens.cached
        total.completion_tokens += tokens.completion
        total.cost_usd += cost or 0.0
        total.unpriced |= cost is None
        total.models[model] = total.hosts[host] = None
        if table is not None:
            total.price_tables[table] = None
