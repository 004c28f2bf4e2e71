"""Options of the agent; nothing is imported here, so that the sandbox and mleredux both can."""

from __future__ import annotations

OPTIONS = {"trials": 100, "search_seconds": 600, "max_rows": 200_000, "folds": 5}
