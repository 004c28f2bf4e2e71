"""The agent's steps as an ATIF document."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class Rollout:
    """Steps so far; the file is written anew after each, so that it is whole whenever the agent is stopped."""

    def __init__(self, path: Path, prompt: str) -> None:
        self.path = path
        self.steps: list[dict[str, Any]] = []
        self._add(source="user", message=prompt)

    def say(self, message: str, **extra: Any) -> None:
        """Add a step of the agent.

        Args:
            message: What it did and found.
            extra: Facts of ML engineering: `stage`, `validation_metric`, `lower_is_better`.
        """
        print(message, flush=True)
        self._add(source="agent", message=message, llm_call_count=0, extra=extra)

    def _add(self, **step: Any) -> None:
        number = len(self.steps) + 1
        self.steps.append({"step_id": number, "timestamp": datetime.now(UTC).isoformat(), **step})
        document = {
            "schema_version": "ATIF-v1.8",
            "session_id": "nearest-rows",
            "agent": {"name": "nearest-rows", "version": "1"},
            "steps": self.steps,
            "final_metrics": {"total_steps": number},
        }
        temporary = self.path.with_suffix(".part")
        temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        temporary.replace(self.path)
