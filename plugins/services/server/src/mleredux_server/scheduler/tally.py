"""The scheduler's counters since the server started; read from other threads."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

REASONS = ("lease", "deadline", "cancel", "preemption")
"""Why the server kills a worker: it stopped renewing its lease, exceeded a deadline, did not obey a cancellation, or
did not make room for another run."""


@dataclass
class Tally:
    """Counts since the server started.

    Attributes:
        started: Jobs assigned to workers, by type.
        ended: Ended jobs, by type and outcome.
        retried: Jobs queued again because their worker exited, by type.
        taken_away: Jobs whose worker was killed by the server, by type and reason: `lease`, `deadline` or `cancel`.
        silence: Longest time in seconds since an active job's lease was renewed.
        workers_started: Started worker processes.
        workers_died: Worker processes that failed or were killed.
        workers: Live worker processes, by whether they are `busy` or `idle`.
        round_at: When the dispatcher last completed a round without an error, on the monotonic clock.
    """

    started: Counter[str] = field(default_factory=Counter)
    ended: Counter[tuple[str, str]] = field(default_factory=Counter)
    retried: Counter[str] = field(default_factory=Counter)
    taken_away: Counter[tuple[str, str]] = field(default_factory=Counter)
    silence: float = 0.0
    workers_started: int = 0
    workers_died: int = 0
    workers: dict[str, int] = field(default_factory=lambda: {"busy": 0, "idle": 0})
    round_at: float = field(default_factory=time.monotonic)
