"""Convert OpenHands' events to a rollout. The output of an agent is untrusted: invalid data is ignored."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

from mleredux_rollout import (
    AgentInfo,
    Metrics,
    Observation,
    ObservationResult,
    Step,
    ToolCall,
    Trajectory,
    as_arguments,
    as_dict,
    as_number,
    as_objects,
    as_string,
    as_time,
    read_lines,
    read_object,
    sum_usage,
    usage_of,
)

EVENTS = "logs/openhands/events.jsonl"
USAGE = "logs/openhands/usage.json"
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])")
Json = dict[str, Any]


def read_rollout(output: Path) -> Trajectory | None:
    """Return the rollout of OpenHands' log in a run's output folder.

    Returns:
        The rollout, or None if there is no log or nothing in it is readable.
    """
    events = read_lines(output, EVENTS)
    if not any(_kind(event) in _READ for event in events):
        return None
    usage = _Usage(read_object(output, USAGE))
    steps = _Steps(usage)
    for event in events:
        steps.add(event)
    return Trajectory(
        agent=AgentInfo(
            name="openhands", version=usage.version, model_name=usage.model, tool_definitions=_tools(events)
        ),
        steps=[Step.model_validate({**step, "step_id": number}) for number, step in enumerate(steps.done, 1)],
        final_metrics=sum_usage(usage.calls, cost=usage.cost),
    )


class _Usage:
    """Tokens and cost, per response of the language model and in total."""

    def __init__(self, events: Json) -> None:
        metrics = as_objects(list(as_dict(events.get("usage_to_metrics")).values()))
        self.version = as_string(events.get("openhands_version")) or "unknown"
        self.model = next((name for item in metrics if (name := as_string(item.get("model_name")))), None)
        # For models without a price, OpenHands reports a cost of 0.
        self.cost = sum(as_number(item.get("accumulated_cost")) or 0.0 for item in metrics)
        self.calls: list[Metrics] = []
        self.by_response: dict[str, Metrics] = {}
        for item in metrics:
            uses, costs = as_objects(item.get("token_usages")), as_objects(item.get("costs"))
            for index, use in enumerate(uses):
                call = usage_of(use, costs[index].get("cost") if len(costs) == len(uses) else None)
                if call is not None:
                    self.calls.append(call)
                    self.by_response.setdefault(as_string(use.get("response_id")), call)


class _Steps:
    """Builds steps: the calls of one model response become one step, with the result of each call."""

    def __init__(self, usage: _Usage) -> None:
        self._usage = usage
        self.done: list[Json] = []
        self._by_response: dict[str, Json] = {}
        self._by_call: dict[str, Json] = {}
        self._started: dict[str, str | None] = {}

    def add(self, event: Json) -> None:
        """Add an event."""
        kind = _kind(event)
        if kind == "SystemPromptEvent":
            self._add(event, "system", _words(event.get("system_prompt")))
        elif kind == "MessageEvent":
            message = as_dict(event.get("llm_message"))
            source = "agent" if event.get("source") == "agent" else "user"
            self._add(event, source, _words(message.get("content")), message)
        elif kind == "ActionEvent":
            self._action(event)
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            self._result(event)
        elif kind == "ConversationErrorEvent":
            code = as_string(event.get("code")) or "Error"
            self._add(event, "system", f"{code}: {as_string(event.get('detail'))}")

    def _add(self, event: Json, source: str, message: str, thought: Json | None = None) -> Json:
        step: Json = {"source": source, "message": message, "timestamp": as_time(event.get("timestamp"))}
        if source == "agent":
            step["reasoning_content"] = as_string((thought or {}).get("reasoning_content")) or None
            step["metrics"] = self._usage.by_response.get(as_string(event.get("llm_response_id")) or "\0")
        self.done.append(step)
        return step

    def _action(self, event: Json) -> None:
        response = as_string(event.get("llm_response_id"))
        call = as_string(event.get("tool_call_id")) or f"call_{len(self._by_call) + 1}"
        step = self._by_response.get(response) if response else None
        if step is None:
            step = self._add(event, "agent", _words(event.get("thought")), event)
            step["tool_calls"] = []
            if response:
                self._by_response[response] = step
        if call in self._by_call:
            return
        self._by_call[call], self._started[call] = step, as_time(event.get("timestamp"))
        tool = as_string(event.get("tool_name")) or "unknown"
        step["tool_calls"].append(ToolCall(tool_call_id=call, function_name=tool, arguments=_arguments(event)))

    def _result(self, event: Json) -> None:
        call, observation = as_string(event.get("tool_call_id")), event.get("observation")
        failed = _kind(event) != "ObservationEvent"
        if isinstance(observation, dict):
            text, code = _words(observation.get("content")), observation.get("exit_code")
            failed = observation.get("is_error") is True or (isinstance(code, int) and code > 0)
        else:
            text = as_string(event.get("error")) or as_string(event.get("rejection_reason"))
        step = self._by_call.get(call)
        if step is None:
            self._add(event, "system", text)
            return
        before = step["observation"].results if "observation" in step else []
        step["observation"] = Observation(results=[*before, ObservationResult(source_call_id=call, content=text)])
        if any(item.tool_call_id == call and item.function_name == "terminal" for item in step["tool_calls"]):
            extra = step.setdefault("extra", {"is_buggy": False, "seconds": 0.0})
            extra["is_buggy"] = extra["is_buggy"] or failed
            extra["seconds"] += _seconds(self._started[call], as_time(event.get("timestamp")))


_READ = ("SystemPromptEvent", "MessageEvent", "ActionEvent")


def _kind(event: Json) -> str:
    return as_string(event.get("kind"))


def _tools(events: list[Json]) -> list[Json] | None:
    tools = next((as_objects(event.get("tools")) for event in events if _kind(event) == "SystemPromptEvent"), [])
    named = [
        {"type": "function", "function": {"name": name, "description": as_string(tool.get("description"))}}
        for tool in tools
        if (name := as_string(tool.get("name")) or as_string(tool.get("title")))
    ]
    return named or None


def _arguments(event: Json) -> Json:
    arguments = as_dict(event.get("tool_call")).get("arguments")
    action = {name: value for name, value in as_dict(event.get("action")).items() if name != "kind"}
    return as_arguments(arguments) or as_arguments(action)


def _words(content: Any) -> str:
    """Return the text of OpenHands' content, one part or a list of parts, without terminal control sequences."""
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return _ESCAPES.sub("", "\n".join(text for item in texts if (text := as_string(item))))


def _seconds(start: str | None, end: str | None) -> float:
    try:
        took = datetime.fromisoformat(end or "") - datetime.fromisoformat(start or "")
    except (ValueError, TypeError):
        return 0.0
    return max(0.0, round(took.total_seconds(), 3))
