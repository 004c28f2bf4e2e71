"""When a request is tried once more: exponential backoff with full jitter, and never what is not safe."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import httpx

from mleredux_client.answers import unreachable
from mleredux_client.errors import MlereduxApiError

_BUSY = frozenset({429, 503})
"""The service says that it did nothing: anything may be repeated."""
_GATEWAY = frozenset({502, 504})
"""A proxy does not know what the service did: only what is repeatable is repeated."""
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how soon.

    Attributes:
        retries: Tries after the first, without progress in between; twice as many while a proxy in front of the
            service says that it is away: it is being started again.
        base: Seconds that the first pause takes at most; each further one twice as many.
        longest: Seconds that a pause takes at most.
        longest_asked: Seconds that a service may ask us to wait; where it asks for more, the error is raised at once.
    """

    retries: int = 5
    base: float = 0.5
    longest: float = 10.0
    longest_asked: float = 60.0


@dataclass
class Attempts:
    """The tries of one request, or of one stream that is resumed."""

    policy: RetryPolicy
    repeatable: bool = True
    """Whether the request may be sent again when nobody knows what became of it."""
    failed: int = field(default=0, init=False)

    def progress(self) -> None:
        """Something arrived: the count begins again."""
        self.failed = 0

    def after(self, error: httpx.RequestError | MlereduxApiError, url: str, *, again: bool = False) -> float:
        """Seconds until the next try.

        Args:
            error: What came of this one.
            url: Of the service.
            again: Whether another is worth it whatever it was.

        Raises:
            MlereduxApiError: There were enough, or there is no sense in another.
        """
        if isinstance(error, httpx.RequestError):
            problem: MlereduxApiError = unreachable(url, error)
            pause = self.after_break(error)
        else:
            problem = error
            pause = self.pause() if again else self.after_problem(error)
        if pause is None:
            raise problem from None
        return pause

    def after_break(self, error: httpx.RequestError) -> float | None:
        """Seconds until the next try after a connection that broke; None: give up."""
        may = self.repeatable or isinstance(error, _NEVER_SENT)
        return self.pause() if may and isinstance(error, httpx.TransportError) else None

    def after_problem(self, problem: MlereduxApiError) -> float | None:
        """Seconds until the next try after an answer that is an error; None: give up."""
        going_on = problem.slug == "idempotency-conflict"  # our own first try is still being answered
        may = problem.status in _BUSY or (self.repeatable and (problem.status in _GATEWAY or going_on))
        if not may:
            return None
        if problem.retry_after is None:
            return self.pause(patience=2 if problem.status in _GATEWAY else 1)
        return self.pause(at_least=problem.retry_after) if problem.retry_after <= self.policy.longest_asked else None

    def pause(self, at_least: float = 0.0, *, patience: int = 1) -> float | None:
        """Count a failure; seconds until the next try, None after `patience` times the allowed number."""
        if self.failed >= patience * self.policy.retries:
            return None
        ceiling = min(self.policy.longest, self.policy.base * 2**self.failed)
        self.failed += 1
        return at_least + random.uniform(0, ceiling)
