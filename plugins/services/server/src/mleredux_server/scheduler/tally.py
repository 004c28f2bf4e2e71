"""What the scheduler counts since the server started; it is read from other threads."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts since the server started.

    Attributes:
        started: Jobs handed to workers, by kind.
        ended: Jobs that came to an end, by kind and outcome.
        retried: Jobs that were queued again because their worker ended, by kind.
        workers_started: Worker processes.
        workers_died: Worker processes that ended with an error, or were killed.
        workers: Processes that live now, by whether they are `busy` or `idle`.
        round_at: When the dispatcher last went round without an error, on the monotonic clock.
    """

    started: Counter[str] = field(default_factory=Counter)
    ended: Counter[tuple[str, str]] = field(default_factory=Counter)
    retried: Counter[str] = field(default_factory=Counter)
    workers_started: int = 0
    workers_died: int = 0
    workers: dict[str, int] = field(default_factory=lambda: {"busy": 0, "idle": 0})
    round_at: float = field(default_factory=time.monotonic)
