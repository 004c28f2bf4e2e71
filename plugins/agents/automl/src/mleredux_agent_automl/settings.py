"""Options of the agent; imports nothing, so that both the sandbox and mleredux can use it."""

from __future__ import annotations

OPTIONS = {"trials": 100, "search_seconds": 600, "max_rows": 200_000, "folds": 5}
