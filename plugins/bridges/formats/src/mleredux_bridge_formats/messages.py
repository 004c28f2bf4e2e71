"""Convert a rollout to chat messages in the format of OpenAI's API."""

from __future__ import annotations

import json
from typing import Any

from mleredux.plugin.artifact import Run
from mleredux_rollout import Step, Trajectory, text_of

Message = dict[str, Any]


def messages_of(step: Step) -> list[Message]:
    """Return the messages of a step: its text, and the results of its tool calls."""
    message: Message = {
        "role": "assistant" if step.source == "agent" else step.source,
        "content": text_of(step.message),
    }
    if step.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.tool_call_id,
                "type": "function",
                "function": {"name": call.function_name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in step.tool_calls
        ]
    messages = [message]
    answered: dict[str, str] = {}
    for result in step.observation.results if step.observation else ():
        text = text_of(result.content)
        if result.source_call_id is None:
            messages.append({"role": "user", "content": text})
        else:  # each call gets a single answer
            before = answered.get(result.source_call_id)
            answered[result.source_call_id] = text if before is None else f"{before}\n{text}"
    called = [call.tool_call_id for call in step.tool_calls or ()]
    results = [{"role": "tool", "tool_call_id": name, "content": answered.get(name, "")} for name in called]
    return [message, *results, *messages[1:]]


def chat(trajectory: Trajectory) -> tuple[list[Message], list[Message]]:
    """Return the messages before the agent's first step, and all later messages."""
    steps = trajectory.steps
    first = next((place for place, step in enumerate(steps) if step.source == "agent"), len(steps))
    before = [message for step in steps[:first] for message in messages_of(step)]
    return before, [message for step in steps[first:] for message in messages_of(step)]


def placed(run: Run, messages: list[Message]) -> list[Message]:
    """Return the messages with paths in the run's folder replaced by those in containers (`/task`, `/output`)."""
    encoded = json.dumps(messages, ensure_ascii=False)
    translated: list[Message] = json.loads(encoded.replace(f"{run.path.resolve()}/", "/").replace(f"{run.path}/", "/"))
    return translated


def dumped(content: Any) -> bytes:
    """Return content as one line of JSON."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False).encode() + b"\n"
