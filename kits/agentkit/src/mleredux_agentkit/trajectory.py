"""The agent's own steps as an ATIF document (v1.8), complete after each step."""

from __future__ import annotations

import json
import math
import threading
from datetime import UTC, datetime
from typing import Any

from mleredux_agentkit.files import write
from mleredux_agentkit.llm import Answer
from mleredux_agentkit.task import Task

MAX_TEXT = 20_000
"""Maximum number of characters kept of a message or result."""


class Trajectory:
    """The steps so far, stored in `rollout/trajectory.json` of the output. The first step is the agent's prompt.

    Args:
        task: The task, which determines the path of the file and the default prompt.
        agent: The agent's id.
        version: The agent's version.
        llm: Whether the agent calls language models; if not, its steps record that none was called.
        prompt: The agent's prompt; None: the instructions and the description.
    """

    def __init__(
        self, task: Task, agent: str, version: str = "1", *, llm: bool = False, prompt: str | None = None
    ) -> None:
        self.path = task.output_dir / "rollout" / "trajectory.json"
        self._llm = llm
        self._lock = threading.Lock()
        self._document: dict[str, Any] = {
            "schema_version": "ATIF-v1.8",
            "agent": {"name": agent, "version": version, "extra": {"llm": llm}},
        }
        self._steps: list[str] = []
        self._tokens: dict[str, int] = {}
        self._add({"source": "user", "message": (task.prompt() if prompt is None else prompt)[:MAX_TEXT]})

    def say(self, message: str, *, answer: Answer | None = None, **extra: Any) -> int:
        """Add a step without a tool call.

        Args:
            message: The message of the agent.
            answer: The model's answer that the step is based on, for its token counts.
            extra: Facts about ML engineering: `node_id`, `stage`, `validation_metric`, `is_buggy`, …

        Returns:
            The step's number.
        """
        return self._add({**self._step(message, answer), "extra": extra})

    def act(
        self,
        message: str,
        function: str,
        arguments: dict[str, Any],
        result: str,
        *,
        answer: Answer | None = None,
        **extra: Any,
    ) -> int:
        """Add a step with a tool call: the reason, the function, its arguments, and the result.

        Other arguments and the return value are those of `say`.
        """
        call = f"call_{len(self._steps) + 1}"
        return self._add(
            {
                **self._step(message, answer),
                "tool_calls": [{"tool_call_id": call, "function_name": function, "arguments": arguments}],
                "observation": {"results": [{"source_call_id": call, "content": result[:MAX_TEXT]}]},
                "extra": extra,
            }
        )

    def _step(self, message: str, answer: Answer | None) -> dict[str, Any]:
        step: dict[str, Any] = {"source": "agent", "message": message[:MAX_TEXT]}
        if answer is not None:
            tokens = {"prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.completion_tokens}
            return {**step, "metrics": tokens, "llm_call_count": 1}
        return step if self._llm else {**step, "llm_call_count": 0}

    def _add(self, step: dict[str, Any]) -> int:
        with self._lock:
            number = len(self._steps) + 1
            time = datetime.now(UTC).isoformat(timespec="milliseconds")
            self._steps.append(_json({"step_id": number, "timestamp": time, **_plain(step)}))  # only once for each
            for name, count in step.get("metrics", {}).items():
                self._tokens[f"total_{name}"] = self._tokens.get(f"total_{name}", 0) + count
            head = _json({**self._document, "final_metrics": {"total_steps": number, **self._tokens}})
            steps = ",\n".join(self._steps)
            write(self.path, f'{head[:-1]}, "steps": [\n{steps}\n]}}\n')
        return number


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _plain(value: Any) -> Any:
    """Return a JSON-serializable value: NaN and infinities become None, and NumPy's numbers become plain numbers."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
