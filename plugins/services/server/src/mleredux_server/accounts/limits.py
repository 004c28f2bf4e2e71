"""Rate limits: requests per user, wrong tokens per address."""

from __future__ import annotations

import ipaddress
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from fastapi import Request
from mleredux.models.formats import counted

from mleredux_server.protocol.problems import Problem

WRONG_TOKENS_PER_MINUTE = 200
_GUESSING = "Too many requests without a valid token came from your address in the last minute."
_MOST_KEYS = 50_000


@dataclass(frozen=True)
class Standing:
    """The state of a rate limit after a request.

    Attributes:
        limit: Requests per window.
        remaining: Number of requests that are still allowed now.
        reset: Seconds until the full limit is available.
        wait: Seconds until the next request is allowed; 0 if it is allowed now.
    """

    limit: int
    remaining: int
    reset: float
    wait: float

    def headers(self) -> dict[str, str]:
        """Return the response headers."""
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(math.ceil(self.reset)),
        }


class RateLimit:
    """A leaking bucket for each key: it allows bursts of `most` requests, then as many in each window.

    It stores one number per key: the time when its bucket will be empty again. The clock must be monotonic. Not
    thread-safe: use it only in the thread of the event loop.

    Args:
        most: Requests per window.
        seconds: Length of the window.
        clock: Monotonic, in seconds.
    """

    def __init__(self, most: int, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.most, self.seconds, self._clock = most, seconds, clock
        self._empty_at: dict[str, float] = {}

    def hit(self, key: str, *, count: bool = True) -> Standing:
        """Count a request, unless it exceeds the limit, and return the state of its key.

        Args:
            key: The key.
            count: Whether to count it; refused requests never are.
        """
        now, each = self._clock(), self.seconds / self.most
        full = max(self._empty_at.get(key, now) - now, 0.0)
        wait = full + each - self.seconds
        wait = wait if wait > 1e-9 else 0.0
        if count and not wait:
            if len(self._empty_at) >= _MOST_KEYS:
                used = sorted(((at, key) for key, at in self._empty_at.items() if at > now), reverse=True)
                self._empty_at = {key: at for at, key in used[: _MOST_KEYS // 2]}  # if all are in use, the fuller half
            full += each
            self._empty_at[key] = now + full
        remaining = math.floor((self.seconds - full) / self.seconds * self.most + 1e-6)
        return Standing(self.most, max(remaining, 0), full, wait)


class Limits:
    """All limits of a service.

    Args:
        requests_per_minute: Limit per user.
        wrong_tokens_per_minute: Limit per address.
    """

    def __init__(self, requests_per_minute: int, wrong_tokens_per_minute: int = WRONG_TOKENS_PER_MINUTE) -> None:
        self.of_user = RateLimit(requests_per_minute)
        self.of_failures = RateLimit(wrong_tokens_per_minute)

    def count_request(self, request: Request, user_id: str) -> None:
        """Count a request of a user across all of their tokens, and put the result into the response headers.

        Raises:
            Problem: The request exceeds the limit.
        """
        request.state.rate = self.of_user.hit(user_id)
        _check(request.state.rate, "You made too many requests in the last minute.")

    def count_failure(self, request: Request) -> None:
        """Count a request without a valid token.

        Raises:
            Problem: The request exceeds the limit of its address.
        """
        _check(self.of_failures.hit(address_of(request)), _GUESSING)

    def check_guess(self, request: Request) -> None:
        """Refuse to look up an unknown token from an address that sent too many wrong ones.

        Raises:
            Problem: The address sent too many wrong tokens.
        """
        _check(self.of_failures.hit(address_of(request), count=False), _GUESSING)


def address_of(request: Request) -> str:
    """Return the origin of a request: an address, or the IPv6 network of one customer."""
    host = request.client.host if request.client else "unknown"
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host[:64]
    if address.version == 6 and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def _check(standing: Standing, detail: str) -> None:
    if standing.wait:
        seconds = math.ceil(standing.wait)
        hint = f"Wait {counted(seconds, 'second')}."
        raise Problem("too-many-requests", detail, hint=hint, headers={"Retry-After": str(seconds)})
