"""OpenHands' events as a rollout. What an agent left may be anything: what does not fit is passed over."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from mleredux.plugin.rollout import (
    AgentInfo,
    FinalMetrics,
    InvalidRollout,
    Metrics,
    Observation,
    ObservationResult,
    Step,
    ToolCall,
    Trajectory,
    as_count,
    as_number,
    as_objects,
    read_below,
)

EVENTS = "logs/openhands/events.jsonl"
USAGE = "logs/openhands/usage.json"
_MOST_BYTES = 64 << 20
_MOST_EVENTS = 20_000
_LONGEST = 1 << 20
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])")
Json = dict[str, Any]


def read_rollout(output: Path) -> Trajectory | None:
    """The rollout of what OpenHands logged in a run's output folder.

    Returns:
        None where there is no log, or nothing in it that could be read.
    """
    events = list(_events(_read(output, EVENTS)))
    if not any(_kind(event) in _READ for event in events):
        return None
    usage = _usage(_read(output, USAGE))
    steps = _Steps(usage)
    for event in events:
        steps.add(event)
    return Trajectory(
        agent=AgentInfo(
            name="openhands", version=usage.version, model_name=usage.model, tool_definitions=_tools(events)
        ),
        steps=[Step.model_validate({**step, "step_id": number}) for number, step in enumerate(steps.done(), 1)],
        final_metrics=usage.final(),
    )


class _Usage:
    """Tokens and cost, by response of the language model and in all."""

    def __init__(self, found: Json) -> None:
        by_usage = found.get("usage_to_metrics")
        metrics = as_objects(list(by_usage.values()) if isinstance(by_usage, dict) else None)
        self.version = _text(found.get("openhands_version")) or "unknown"
        self.model = next((name for item in metrics if (name := _text(item.get("model_name")))), None)
        self.by_response: dict[str, Metrics] = {}
        # Of a model without a price, OpenHands says that it cost nothing.
        self._cost = [cost for item in metrics if (cost := as_number(item.get("accumulated_cost")))]
        self._calls: list[Metrics] = []
        for item in metrics:
            costs = as_objects(item.get("costs"))
            for index, use in enumerate(as_objects(item.get("token_usages"))):
                cost = (
                    as_number(costs[index].get("cost")) if len(costs) == len(as_objects(item["token_usages"])) else None
                )
                call = Metrics(
                    prompt_tokens=as_count(use.get("prompt_tokens")),
                    completion_tokens=as_count(use.get("completion_tokens")),
                    cached_tokens=as_count(use.get("cache_read_tokens")),
                    cost_usd=cost,
                )
                self._calls.append(call)
                self.by_response.setdefault(_text(use.get("response_id")) or "", call)

    def final(self) -> FinalMetrics | None:
        """Sums over all calls, those that made no step included."""
        if not self._calls and not self._cost:
            return None
        return FinalMetrics(
            total_prompt_tokens=sum(call.prompt_tokens or 0 for call in self._calls),
            total_completion_tokens=sum(call.completion_tokens or 0 for call in self._calls),
            total_cached_tokens=sum(call.cached_tokens or 0 for call in self._calls),
            total_cost_usd=sum(self._cost) if self._cost else None,
        )


class _Steps:
    """Steps as they grow: calls of one response of the model are one step, with what came back from each."""

    def __init__(self, usage: _Usage) -> None:
        self._usage = usage
        self._steps: list[Json] = []
        self._by_response: dict[str, Json] = {}
        self._by_call: dict[str, Json] = {}
        self._started: dict[str, str | None] = {}

    def add(self, event: Json) -> None:
        """Take an event in."""
        kind = _kind(event)
        if kind == "SystemPromptEvent":
            self._say(event, "system", _words(event.get("system_prompt")))
        elif kind == "MessageEvent":
            self._message(event)
        elif kind == "ActionEvent":
            self._action(event)
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            self._result(event)
        elif kind == "ConversationErrorEvent":
            self._say(event, "system", f"{_text(event.get('code')) or 'Error'}: {_text(event.get('detail')) or ''}")

    def done(self) -> list[Json]:
        """All steps, without numbers."""
        return self._steps

    def _say(self, event: Json, source: str, message: str) -> Json:
        step: Json = {"source": source, "message": message, "timestamp": _time(event)}
        self._steps.append(step)
        return step

    def _message(self, event: Json) -> None:
        message = event.get("llm_message")
        said = _words(message.get("content")) if isinstance(message, dict) else ""
        if event.get("source") == "agent":
            step = self._say(event, "agent", said)
            step["reasoning_content"] = _text(message.get("reasoning_content")) if isinstance(message, dict) else None
            self._measure(step, _text(event.get("llm_response_id")))
        else:
            self._say(event, "user", said)

    def _action(self, event: Json) -> None:
        response = _text(event.get("llm_response_id")) or ""
        call = _text(event.get("tool_call_id")) or f"call_{len(self._by_call) + 1}"
        step = self._by_response.get(response) if response else None
        if step is None:
            step = self._say(event, "agent", _words(event.get("thought")))
            step |= {"tool_calls": [], "reasoning_content": _text(event.get("reasoning_content"))}
            self._measure(step, response)
            if response:
                self._by_response[response] = step
        if call in self._by_call:
            return
        self._by_call[call], self._started[call] = step, _time(event)
        step["tool_calls"].append(
            ToolCall(
                tool_call_id=call,
                function_name=_text(event.get("tool_name")) or "unknown",
                arguments=_arguments(event),
            )
        )

    def _result(self, event: Json) -> None:
        call = _text(event.get("tool_call_id")) or ""
        step = self._by_call.get(call)
        observation = event.get("observation")
        failed = _kind(event) != "ObservationEvent"
        if isinstance(observation, dict):
            said = _words(observation.get("content"))
            code = observation.get("exit_code")
            failed = observation.get("is_error") is True or (isinstance(code, int) and code > 0)
        else:
            said = _text(event.get("error")) or _text(event.get("rejection_reason")) or ""
        if step is None:
            self._say(event, "system", said)
            return
        result = ObservationResult(source_call_id=call, content=said)
        step["observation"] = Observation(results=[*_results(step), result])
        if _ran_code(step, call):
            extra = step.setdefault("extra", {})
            extra["is_buggy"] = bool(extra.get("is_buggy")) or failed
            extra["seconds"] = extra.get("seconds", 0.0) + _seconds(self._started[call], _time(event))

    def _measure(self, step: Json, response: str | None) -> None:
        step["metrics"] = self._usage.by_response.get(response or "\0")


_READ = ("SystemPromptEvent", "MessageEvent", "ActionEvent")


def _read(output: Path, name: str) -> bytes:
    """A log's bytes; nothing where there is none that may be read."""
    try:
        return read_below(output, name, max_bytes=_MOST_BYTES, cut=True)
    except InvalidRollout:
        return b""


def _events(data: bytes) -> Iterator[Json]:
    for line in data.split(b"\n", _MOST_EVENTS)[:_MOST_EVENTS]:
        event = _json(line)
        if isinstance(event, dict):
            yield event


def _usage(data: bytes) -> _Usage:
    found = _json(data)
    return _Usage(found if isinstance(found, dict) else {})


def _json(data: bytes | str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _kind(event: Json) -> str:
    return _text(event.get("kind")) or ""


def _tools(events: list[Json]) -> list[Json] | None:
    tools = next((as_objects(event.get("tools")) for event in events if _kind(event) == "SystemPromptEvent"), [])
    named = [
        {"type": "function", "function": {"name": name, "description": _text(tool.get("description")) or ""}}
        for tool in tools
        if (name := _text(tool.get("name")) or _text(tool.get("title")))
    ]
    return named or None


def _arguments(event: Json) -> Json:
    call = event.get("tool_call")
    arguments = _json(_text(call.get("arguments")) or "") if isinstance(call, dict) else None
    if isinstance(arguments, dict):
        return arguments
    action = event.get("action")
    return {name: value for name, value in action.items() if name != "kind"} if isinstance(action, dict) else {}


def _ran_code(step: Json, call: str) -> bool:
    return any(item.tool_call_id == call and item.function_name == "terminal" for item in step["tool_calls"])


def _results(step: Json) -> list[ObservationResult]:
    found = step.get("observation")
    return list(found.results) if isinstance(found, Observation) else []


def _words(content: Any) -> str:
    """The text of OpenHands' content, one part or a list of parts, without what steers terminals."""
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return _ESCAPES.sub("", "\n".join(text for item in texts if (text := _text(item))))


def _seconds(start: str | None, end: str | None) -> float:
    try:
        took = datetime.fromisoformat(end or "") - datetime.fromisoformat(start or "")
    except (ValueError, TypeError):
        return 0.0
    return max(0.0, round(took.total_seconds(), 3))


def _time(event: Json) -> str | None:
    found = _text(event.get("timestamp"))
    try:
        return datetime.fromisoformat(found).isoformat() if found else None
    except ValueError:
        return None


def _text(value: Any) -> str | None:
    # A lone surrogate, which JSON can write, could not be written again.
    return value[:_LONGEST].encode("utf-8", "replace").decode() if isinstance(value, str) and value else None
