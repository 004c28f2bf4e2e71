"""MLAgentBench's logs as a rollout. What an agent left may be anything: what does not fit is passed over.

`env_log/trace.json` has each action with its result and time; `agent_log/main_log` what the model said, those answers
included that were no action; `usage.jsonl` the tokens of each call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
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
    as_objects,
    read_below,
)

LOGS = "logs/mlagentbench"
_MOST_BYTES = 64 << 20
_MOST_STEPS = 10_000
_LONGEST = 1 << 20
_STEP = re.compile(r"^Step (\d{1,6}):\n\n\nAssistant:\n", re.MULTILINE)
_ENTRIES = ("Reflection", "Research Plan and Status", "Fact Check", "Thought", "Action", "Action Input")
_ENTRY = re.compile(rf"^\s*({'|'.join(_ENTRIES)}):", re.MULTILINE)
_RESULT = "\nObservation:\n\n```\n"
_PARSING = "ActionInputParsingError"
_FAILED = re.compile(r"^Traceback \(most recent call last\):|^\w*(Error|Exception): |^EnvError:", re.MULTILINE)
Json = dict[str, Any]


@dataclass
class _Said:
    """An answer of the model as `main_log` has it."""

    number: int
    entries: dict[str, str]
    result: str

    @property
    def executed(self) -> bool:
        return not self.result.startswith(_PARSING)


def read_rollout(output: Path) -> Trajectory | None:
    """The rollout of what MLAgentBench logged in a run's output folder.

    Returns:
        None where there are no logs, or nothing in them that could be read.
    """
    trace = _json(_read(output, f"{LOGS}/env_log/trace.json"))
    trace = trace if isinstance(trace, dict) else {}
    acted = [step for step in as_objects(trace.get("steps")) if isinstance(step.get("action"), dict)][:_MOST_STEPS]
    said = list(_said(_clean(_read(output, f"{LOGS}/agent_log/main_log").decode("utf-8", "replace"))))
    if not said and not acted:
        return None
    lines = _read(output, f"{LOGS}/usage.jsonl").splitlines()
    calls = [call for line in lines if isinstance(call := _json(line), dict)]
    steps: list[Json] = []
    if problem := _text(trace.get("task_description")):
        steps.append({"source": "user", "message": problem})
    steps += _steps(said, acted, _by_log(calls))
    return Trajectory(
        agent=AgentInfo(
            name="mlagentbench",
            version="ResearchAgent",
            model_name=next((name for call in calls if (name := _text(call.get("model")))), None),
        ),
        steps=[Step.model_validate({**step, "step_id": number}) for number, step in enumerate(steps, 1)],
        final_metrics=_final(calls),
    )


def _steps(said: list[_Said], acted: list[Json], calls: dict[str, list[Json]]) -> Iterator[Json]:
    """Answers with the actions that came of them; actions without a known answer by themselves."""
    left = list(enumerate(acted))
    for answer in said:
        index, action = left.pop(0) if answer.executed and left else (None, None)
        own = calls.pop(f"step_{answer.number}_log.log", [])
        yield _step(answer, index, action, own + _tool_calls(calls, index))
    for index, action in left:
        yield _step(None, index, action, _tool_calls(calls, index))


def _step(answer: _Said | None, index: int | None, action: Json | None, calls: list[Json]) -> Json:
    entries = answer.entries if answer else {}
    done = action["action"] if action else {}
    name = _text(done.get("name")) or entries.get("Action", "").strip() or "unknown"
    given = entries.get("Action Input", "").strip()
    arguments = done.get("args") if action else _json(given)
    result = (_text(action.get("observation")) if action else None) or (answer.result if answer else "")
    call = f"action_{index}" if index is not None else "action"
    thoughts = [f"{entry}: {text.strip()}" for entry, text in entries.items() if not entry.startswith("Action")]
    step: Json = {
        "source": "agent",
        "timestamp": _time(action.get("timestamp")) if action else None,
        "message": "\n".join(thoughts),
        "tool_calls": [
            ToolCall(
                tool_call_id=call,
                function_name=name,
                arguments=_plain(arguments) if isinstance(arguments, dict) else {"input": _text(arguments) or given},
            )
        ],
        "observation": Observation(results=[ObservationResult(source_call_id=call, content=result)]),
        "metrics": _metrics(calls) if calls else None,
        "llm_call_count": len(calls) or None,
    }
    if name == "Execute Script":
        step["extra"] = {"is_buggy": bool(_FAILED.search(result))}
    return step


def _said(text: str) -> Iterator[_Said]:
    """Answers in `main_log`: each begins with its number, which grows by at most one."""
    starts: list[re.Match[str]] = []
    for match in _STEP.finditer(text):
        if int(match[1]) <= (int(starts[-1][1]) + 1 if starts else 0):
            starts.append(match)
    ends = [match.start() for match in starts[1:]] + [len(text)]
    for match, end in list(zip(starts, ends, strict=False))[:_MOST_STEPS]:
        words, _, result = text[match.end() : end].partition(_RESULT)
        yield _Said(int(match[1]), _entries(words), result.rstrip().removesuffix("```").rstrip("\n"))


def _entries(words: str) -> dict[str, str]:
    found = list(_ENTRY.finditer(words))
    ends = [match.start() for match in found[1:]] + [len(words)]
    entries: dict[str, str] = {}
    for match, end in zip(found, ends, strict=False):
        entries.setdefault(match[1], words[match.end() : end])
    return entries


def _by_log(calls: list[Json]) -> dict[str, list[Json]]:
    """Calls by the log of MLAgentBench that holds them, which names the step."""
    found: dict[str, list[Json]] = {}
    for call in calls:
        found.setdefault(_text(call.get("log")) or "", []).append(call)
    return found


def _tool_calls(calls: dict[str, list[Json]], index: int | None) -> list[Json]:
    if index is None:
        return []
    names = [name for name in calls if name.startswith(f"step_{index}_tool_log.log")]
    return [call for name in names for call in calls.pop(name)]


def _metrics(calls: list[Json]) -> Metrics:
    return Metrics(prompt_tokens=_sum(calls, "prompt_tokens"), completion_tokens=_sum(calls, "completion_tokens"))


def _final(calls: list[Json]) -> FinalMetrics | None:
    if not calls:
        return None
    return FinalMetrics(
        total_prompt_tokens=_sum(calls, "prompt_tokens"), total_completion_tokens=_sum(calls, "completion_tokens")
    )


def _sum(calls: list[Json], name: str) -> int:
    values = (call.get(name) for call in calls)
    return sum(v for v in values if isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 1 << 40)


def _read(output: Path, name: str) -> bytes:
    """A log's bytes; nothing where there is none that may be read."""
    try:
        return read_below(output, name, max_bytes=_MOST_BYTES, cut=True)
    except InvalidRollout:
        return b""


def _json(data: bytes | str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _plain(value: Json) -> Json:
    """What JSON can say again: text without lone surrogates, no NaN."""
    return {
        _clean(str(name)): _text(item) or "" if isinstance(item, str) else _sound(item) for name, item in value.items()
    }


def _sound(value: Any) -> Any:
    try:
        return json.loads(_clean(json.dumps(value, allow_nan=False, ensure_ascii=False)))
    except ValueError:
        return str(value)


def _time(value: Any) -> str | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1e11:
        return None
    return datetime.fromtimestamp(value, UTC).isoformat(timespec="milliseconds")


def _text(value: Any) -> str | None:
    return _clean(value[:_LONGEST]) if isinstance(value, str) and value else None


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
