"""Convert MLAgentBench's logs to a rollout. The output of an agent is untrusted: invalid data is ignored.

`env_log/trace.json` contains each action with its result and time; `agent_log/main_log` all model responses, including
those without an action; `usage.jsonl` the tokens of each call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mleredux_rollout import (
    AgentInfo,
    Step,
    Trajectory,
    add_usage,
    as_arguments,
    as_dict,
    as_objects,
    as_string,
    as_time,
    called,
    read_lines,
    read_log,
    read_object,
    sum_usage,
    usage_of,
)

LOGS = "logs/mlagentbench"
_MOST_STEPS = 10_000
_STEP = re.compile(r"^Step (\d{1,6}):\n\n\nAssistant:\n", re.MULTILINE)
_ENTRIES = ("Reflection", "Research Plan and Status", "Fact Check", "Thought", "Action", "Action Input")
_ENTRY = re.compile(rf"^\s*({'|'.join(_ENTRIES)}):", re.MULTILINE)
_RESULT = "\nObservation:\n\n```\n"
_PARSING = "ActionInputParsingError"
_FAILED = re.compile(r"^Traceback \(most recent call last\):|^\w*(Error|Exception): |^EnvError:", re.MULTILINE)
Json = dict[str, Any]


@dataclass
class _Answer:
    """A model response in `main_log`."""

    number: int
    entries: dict[str, str]
    result: str

    @property
    def executed(self) -> bool:
        return not self.result.startswith(_PARSING)


def read_rollout(output: Path) -> Trajectory | None:
    """Return the rollout of MLAgentBench's logs in a run's output folder.

    Returns:
        The rollout, or None if there are no logs or nothing in them is readable.
    """
    trace = read_object(output, f"{LOGS}/env_log/trace.json")
    acted = [step for step in as_objects(trace.get("steps")) if isinstance(step.get("action"), dict)][:_MOST_STEPS]
    answers = list(_answers(read_log(output, f"{LOGS}/agent_log/main_log")))
    if not answers and not acted:
        return None
    calls = read_lines(output, f"{LOGS}/usage.jsonl")
    steps: list[Json] = []
    if problem := as_string(trace.get("task_description")):
        steps.append({"source": "user", "message": problem})
    steps += _steps(answers, acted, _by_log(calls))
    return Trajectory(
        agent=AgentInfo(
            name="mlagentbench",
            version="ResearchAgent",
            model_name=next((name for call in calls if (name := as_string(call.get("model")))), None),
        ),
        steps=[Step.model_validate({**step, "step_id": number}) for number, step in enumerate(steps, 1)],
        final_metrics=sum_usage(map(usage_of, calls)),
    )


def _steps(answers: list[_Answer], acted: list[Json], calls: dict[str, list[Json]]) -> Iterator[Json]:
    """Yield steps: answers with the resulting actions, and actions without a known answer separately."""
    left = list(enumerate(acted))
    for answer in answers:
        index, action = left.pop(0) if answer.executed and left else (None, None)
        own = calls.pop(f"step_{answer.number}_log.log", [])
        yield _step(answer, index, action, own + _tool_calls(calls, index))
    for index, action in left:
        yield _step(None, index, action, _tool_calls(calls, index))


def _step(answer: _Answer | None, index: int | None, action: Json | None, calls: list[Json]) -> Json:
    entries = answer.entries if answer else {}
    done = action["action"] if action else {}
    name = as_string(done.get("name")) or entries.get("Action", "").strip() or "unknown"
    content = entries.get("Action Input", "").strip()
    arguments = as_arguments(done.get("args") if action else content)
    result = as_string(as_dict(action).get("observation")) or (answer.result if answer else "")
    thoughts = [f"{entry}: {text.strip()}" for entry, text in entries.items() if not entry.startswith("Action")]
    step: Json = {
        "source": "agent",
        "timestamp": as_time(as_dict(action).get("timestamp")),
        "message": "\n".join(thoughts),
        **called("action" if index is None else f"action_{index}", name, arguments or {"input": content}, result),
        "metrics": add_usage(map(usage_of, calls)),
        "llm_call_count": len(calls) or None,
    }
    if name == "Execute Script":
        step["extra"] = {"is_buggy": bool(_FAILED.search(result))}
    return step


def _answers(text: str) -> Iterator[_Answer]:
    """Yield the answers in `main_log`: each begins with its number, which increases by at most one."""
    starts: list[re.Match[str]] = []
    for match in _STEP.finditer(text):
        if int(match[1]) <= (int(starts[-1][1]) + 1 if starts else 0):
            starts.append(match)
    ends = [match.start() for match in starts[1:]] + [len(text)]
    for match, end in list(zip(starts, ends, strict=False))[:_MOST_STEPS]:
        words, _, result = text[match.end() : end].partition(_RESULT)
        yield _Answer(int(match[1]), _entries(words), result.rstrip().removesuffix("```").rstrip("\n"))


def _entries(words: str) -> dict[str, str]:
    matches = list(_ENTRY.finditer(words))
    ends = [match.start() for match in matches[1:]] + [len(words)]
    entries: dict[str, str] = {}
    for match, end in zip(matches, ends, strict=False):
        entries.setdefault(match[1], words[match.end() : end])
    return entries


def _by_log(calls: list[Json]) -> dict[str, list[Json]]:
    """Return calls grouped by the MLAgentBench log that contains them, whose name identifies the step."""
    calls_by_log: dict[str, list[Json]] = {}
    for call in calls:
        calls_by_log.setdefault(as_string(call.get("log")), []).append(call)
    return calls_by_log


def _tool_calls(calls: dict[str, list[Json]], index: int | None) -> list[Json]:
    if index is None:
        return []
    names = [name for name in calls if name.startswith(f"step_{index}_tool_log.log")]
    return [call for name in names for call in calls.pop(name)]
