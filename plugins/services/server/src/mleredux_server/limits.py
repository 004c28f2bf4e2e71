"""How often somebody may ask: so many requests a token, so many wrong tokens an address."""

from __future__ import annotations

import ipaddress
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from fastapi import Request

from mleredux_server.problems import Problem

WRONG_TOKENS_PER_MINUTE = 200
_MOST_KEYS = 50_000


@dataclass(frozen=True)
class Standing:
    """How a caller stands with a limit after a request.

    Attributes:
        limit: Requests of a window.
        remaining: How many may follow at once.
        reset: Seconds until all may.
        wait: Seconds until the next may; 0 where it may now.
    """

    limit: int
    remaining: int
    reset: float
    wait: float

    def headers(self) -> dict[str, str]:
        """For the answer."""
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(math.ceil(self.reset)),
        }


class RateLimit:
    """A leaking bucket for each key: `most` requests at once, and as many in each window after that.

    One number a key is kept: when its bucket is empty again. The clock is one that nobody sets. To be used in one
    thread, the event loop's.

    Args:
        most: Requests of a window.
        seconds: The window.
        clock: Seconds that only grow.
    """

    def __init__(self, most: int, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.most, self.seconds, self._clock = most, seconds, clock
        self._empty_at: dict[str, float] = {}

    def hit(self, key: str) -> Standing:
        """Count a request, unless it is one too many: that changes nothing."""
        now, each = self._clock(), self.seconds / self.most
        empty_at = max(self._empty_at.get(key, now), now)
        wait = empty_at + each - now - self.seconds
        if wait <= 1e-9:
            if len(self._empty_at) >= _MOST_KEYS:
                self._tidy(now)
            self._empty_at[key] = empty_at = empty_at + each
        return self._standing(empty_at - now, max(wait, 0.0) if wait > 1e-9 else 0.0)

    def look(self, key: str) -> Standing:
        """How a key stands, counting nothing."""
        now = self._clock()
        full = max(self._empty_at.get(key, now) - now, 0.0)
        wait = full + self.seconds / self.most - self.seconds
        return self._standing(full, wait if wait > 1e-9 else 0.0)

    def _standing(self, full: float, wait: float) -> Standing:
        remaining = math.floor((self.seconds - full) / self.seconds * self.most + 1e-6)
        return Standing(self.most, max(remaining, 0), full, wait)

    def _tidy(self, now: float) -> None:
        """Forget empty buckets; where all are in use, the emptier half."""
        used = sorted(((at, key) for key, at in self._empty_at.items() if at > now), reverse=True)
        self._empty_at = {key: at for at, key in used[: _MOST_KEYS // 2]}


class Limits:
    """All limits of a service.

    Args:
        requests_per_minute: Of one token.
        wrong_tokens_per_minute: From one address.
    """

    def __init__(self, requests_per_minute: int, wrong_tokens_per_minute: int = WRONG_TOKENS_PER_MINUTE) -> None:
        self.of_token = RateLimit(requests_per_minute)
        self.of_failures = RateLimit(wrong_tokens_per_minute)

    def count_request(self, request: Request, token_id: str) -> None:
        """Count a request of a token; how it stands is for the answer's headers.

        Raises:
            Problem: It is one too many.
        """
        standing = self.of_token.hit(token_id)
        request.state.rate = standing
        if standing.wait:
            raise _too_many("The token was used too often in the last minute.", standing.wait)

    def count_failure(self, request: Request) -> None:
        """Count a request without a good token.

        Raises:
            Problem: It is one too many from its address.
        """
        standing = self.of_failures.hit(address_of(request))
        if standing.wait:
            raise _guessing(standing.wait)

    def check_guess(self, request: Request) -> None:
        """Refuse to look a token up that nobody showed before, from where too many wrong ones came.

        Raises:
            Problem: Too many came.
        """
        standing = self.of_failures.look(address_of(request))
        if standing.wait:
            raise _guessing(standing.wait)


def address_of(request: Request) -> str:
    """Where a request comes from: an address, or a network of IPv6 that one customer has."""
    host = request.client.host if request.client else "unknown"
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host[:64]
    if address.version == 6 and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def _guessing(wait: float) -> Problem:
    return _too_many("Too many requests without a good token came from your address in the last minute.", wait)


def _too_many(detail: str, wait: float) -> Problem:
    seconds = math.ceil(wait)
    return Problem(
        "too-many-requests",
        detail,
        hint=f"Wait {seconds} second{'s' if seconds != 1 else ''}.",
        headers={"Retry-After": str(seconds)},
    )
