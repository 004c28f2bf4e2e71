"""When to retry a request: with exponential backoff and full jitter, and only if it is safe."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import httpx

from mleredux_client.answers import unreachable
from mleredux_client.errors import MlereduxApiError

_BUSY = frozenset({429, 503})
"""Statuses that mean that the server did nothing, so that any request may be repeated."""
_GATEWAY = frozenset({502, 504})
"""Statuses that mean that a proxy does not know what the server did, so that only repeatable requests are repeated."""
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how soon to retry.

    Attributes:
        retries: Maximum number of retries without progress in between; twice as many while a proxy reports that the
            server is unavailable, since it is restarting.
        base: Maximum seconds of the first pause; the maximum doubles with each further one.
        longest: Maximum seconds of any pause.
        longest_asked: Maximum seconds that the server may request to wait; if it requests more, the error is raised
            immediately.
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
    """Whether the request may be sent again if its outcome is unknown."""
    failed: int = field(default=0, init=False)

    def progress(self) -> None:
        """Reset the count, because data arrived."""
        self.failed = 0

    def after(self, error: httpx.RequestError | MlereduxApiError, url: str, *, again: bool = False) -> float:
        """Return the seconds until the next try.

        Args:
            error: The error of this try.
            url: URL of the server.
            again: Whether to retry regardless of the error.

        Raises:
            MlereduxApiError: There were too many tries, or another one would not help.
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
        """Return the seconds until the next try after a broken connection; None: give up."""
        may = self.repeatable or isinstance(error, _NEVER_SENT)
        return self.pause() if may and isinstance(error, httpx.TransportError) else None

    def after_problem(self, problem: MlereduxApiError) -> float | None:
        """Return the seconds until the next try after an error response; None: give up."""
        going_on = problem.slug == "idempotency-conflict"  # the first try is still in progress
        may = problem.status in _BUSY or (self.repeatable and (problem.status in _GATEWAY or going_on))
        if not may:
            return None
        if problem.retry_after is None:
            return self.pause(patience=2 if problem.status in _GATEWAY else 1)
        return self.pause(at_least=problem.retry_after) if problem.retry_after <= self.policy.longest_asked else None

    def pause(self, at_least: float = 0.0, *, patience: int = 1) -> float | None:
        """Count a failure; return the seconds until the next try, or None after `patience` times the allowed number."""
        if self.failed >= patience * self.policy.retries:
            return None
        ceiling = min(self.policy.longest, self.policy.base * 2**self.failed)
        self.failed += 1
        return at_least + random.uniform(0, ceiling)
