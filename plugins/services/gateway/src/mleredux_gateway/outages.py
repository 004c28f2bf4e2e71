"""The time for which providers of language models were down, for which a run's clock pauses."""

from __future__ import annotations

from dataclasses import dataclass

GAP = 120.0
"""Most seconds between a failed call and the next one that count as waiting for the provider."""


@dataclass
class Outages:
    """Sums the seconds from failed calls to the next successful one. The times are of one monotonic clock.

    An agent that does other work after a failed call waits for `GAP` seconds at most, and all pauses together last at
    most as long as the run's time limit, so that no agent can prolong its run by provoking errors.

    Attributes:
        most: The most seconds in all.
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
