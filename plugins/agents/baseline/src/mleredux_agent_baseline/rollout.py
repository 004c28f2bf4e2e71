"""The agent's own trace, as ATIF (v1.7) JSON: one step for each thing it does, written anew after each."""

from __future__ import annotations

import json
import math
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SCHEMA_VERSION = "ATIF-v1.7"
AGENT_VERSION = "1"
MAX_TEXT = 20_000


class Rollout:
    """Steps so far, and the file that holds them.

    Args:
        path: Where the document goes; its folder is made.
        session: The run's name.
        prompt: What the agent was told.
    """

    def __init__(self, path: Path, session: str, prompt: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._document: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "session_id": session,
            "agent": {"name": "baseline", "version": AGENT_VERSION, "extra": {"llm": False}},
            "steps": [],
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        self._add({"source": "user", "message": prompt[:MAX_TEXT]})

    def act(
        self, message: str, function: str, arguments: dict[str, Any], result: str, extra: dict[str, Any] | None = None
    ) -> int:
        """Add a step of the agent: why, what it called, and what came back.

        Args:
            extra: Facts of ML engineering: `node_id`, `stage`, `validation_metric`, `is_buggy`, …

        Returns:
            The step's number.
        """
        number = len(self._document["steps"]) + 1
        call = f"call_{number}"
        return self._add(
            {
                "source": "agent",
                "message": message,
                "tool_calls": [{"tool_call_id": call, "function_name": function, "arguments": arguments}],
                "observation": {"results": [{"source_call_id": call, "content": result[:MAX_TEXT]}]},
                "llm_call_count": 0,
                "extra": extra or {},
            }
        )

    def say(self, message: str, extra: dict[str, Any] | None = None) -> int:
        """Add a step of the agent that calls nothing."""
        return self._add({"source": "agent", "message": message, "llm_call_count": 0, "extra": extra or {}})

    def _add(self, step: dict[str, Any]) -> int:
        with self._lock:
            number = len(self._document["steps"]) + 1
            time = datetime.now(UTC).isoformat(timespec="milliseconds")
            self._document["steps"].append({"step_id": number, "timestamp": time, **finite(step)})
            self._document["final_metrics"] = {"total_steps": number}
            temporary = self.path.with_name(f".{self.path.name}.part")
            temporary.write_text(json.dumps(self._document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
            temporary.replace(self.path)
        return number


def finite(value: Any) -> Any:
    """The value with NaN and infinities, which JSON lacks, as None; numpy numbers as plain ones."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
