"""The rate limit of a run's validations."""

from __future__ import annotations

import threading
import time

BURST = 10
PER_SECOND = 0.5


class RateLimit:
    """A token bucket."""

    def __init__(self, burst: int = BURST, per_second: float = PER_SECOND) -> None:
        self._burst, self._per_second = burst, per_second
        self._tokens, self._time = float(burst), time.monotonic()
        self._lock = threading.Lock()

    def take(self) -> float:
        """Take a token: return 0.0 if there is one, else the seconds until there will be one."""
        with self._lock:
            now = time.monotonic()
            self._tokens = min(self._burst, self._tokens + (now - self._time) * self._per_second)
            self._time = now
            if self._tokens >= 1:
                self._tokens -= 1
                return 0.0
            return (1 - self._tokens) / self._per_second
