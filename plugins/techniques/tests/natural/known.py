"""Where the graders don't judge a sheet as it deserves, each with the reason; a fix removes its entry."""

from __future__ import annotations

EXECUTED: frozenset[str] = frozenset()
"""Questions whose sheet's advice is executed too, which takes seconds; of others, the facts are graded."""

KNOWN: dict[str, str] = {}
