"""Convert mini-swe-agent's trajectory (`.traj.json`, format mini-swe-agent-1.1) to a rollout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mleredux_rollout import (
    AgentInfo,
    Observation,
    ObservationResult,
    Step,
    StepExtra,
    ToolCall,
    Trajectory,
    as_dict,
    as_list,
    as_number,
    as_text,
    as_time,
    function_tool,
    read_native,
    sum_usage,
    usage_of,
)

LOG = "mini-swe-agent.traj.json"
MAX_MESSAGES = 50_000
_NAME = 200
_BASH = function_tool("bash", "Execute a bash command", "command")


def read_rollout(output: Path) -> Trajectory | None:
    """Return the rollout of an output folder, or None if there is no trajectory in its `logs`.

    Raises:
        InvalidRollout: The trajectory is damaged.
    """
    path = output / "logs" / LOG
    if not path.is_file():
        path = next(iter(sorted(output.glob("logs/*.traj.json"))), path)
        if not path.is_file():
            return None
    document = as_dict(read_native(output, path.relative_to(output).as_posix()))
    messages = [as_dict(message) for message in as_list(document.get("messages"))[:MAX_MESSAGES]]
    info = as_dict(document.get("info"))
    model = as_text(as_dict(as_dict(as_dict(info.get("config")).get("model"))).get("model_name"), _NAME) or None
    steps = _steps([message for message in messages if message], model)
    if not steps:
        return None
    status = as_text(info.get("exit_status"), _NAME)
    return Trajectory(
        agent=AgentInfo(
            name="mini-swe-agent",
            version=as_text(info.get("mini_version"), _NAME) or "unknown",
            model_name=model,
            tool_definitions=[_BASH],
        ),
        steps=steps,
        final_metrics=sum_usage(
            (step.metrics for step in steps),
            cost=as_dict(info.get("model_stats")).get("instance_cost"),
            steps=len(steps),
        ),
        extra={"mini-swe-agent": {"exit_status": status}} if status else None,
    )


def _steps(messages: list[dict[str, Any]], model: str | None) -> list[Step]:
    """Return a step for each message of the model with its results, and a step for each other message."""
    steps: list[Step] = []
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if message.get("role") == "assistant":
            results = []
            while index < len(messages) and _is_result(messages[index]):
                results.append(messages[index])
                index += 1
            steps.append(_agent_step(len(steps) + 1, message, results, model))
        elif refused := _refused(message):
            steps.append(_agent_step(len(steps) + 1, refused, [message], model))
        else:
            steps.append(_other_step(len(steps) + 1, message))
    return steps


def _is_result(message: dict[str, Any]) -> bool:
    """Return whether a message contains the results of the preceding commands."""
    extra = as_dict(message.get("extra"))
    return message.get("role") == "tool" or (message.get("role") == "user" and "returncode" in extra)


def _refused(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return the model's invalid answer that this message rejects, which is stored nowhere else."""
    extra = as_dict(message.get("extra"))
    if message.get("role") != "user" or extra.get("interrupt_type") != "FormatError":
        return None
    response = as_dict(extra.get("response"))
    choices = as_list(response.get("choices"))
    answer = as_dict(as_dict(choices[0] if choices else None).get("message"))
    text = answer.get("content") or extra.get("model_response")
    return {"content": text, "extra": {"response": response}} if text or answer else None


def _agent_step(number: int, message: dict[str, Any], results: list[dict[str, Any]], model: str | None) -> Step:
    extra = as_dict(message.get("extra"))
    calls: dict[str, ToolCall] = {}
    for position, action in enumerate(as_dict(part) for part in as_list(extra.get("actions"))):
        name = as_text(action.get("tool_call_id"), _NAME) or f"call-{number}-{position + 1}"
        name = f"{name}-{position + 1}" if name in calls else name
        calls[name] = ToolCall(
            tool_call_id=name, function_name="bash", arguments={"command": as_text(action.get("command"))}
        )
    names, observations, codes = list(calls), [], []
    for position, result in enumerate(results):
        call = as_text(result.get("tool_call_id"), _NAME)
        by_place = names[position] if position < len(names) else None
        content = as_dict(result.get("extra")).get("raw_output")
        observations.append(
            ObservationResult(
                source_call_id=call if call in calls else by_place,
                content=as_text(content if isinstance(content, str) else _content(result)),
            )
        )
        codes.append(as_dict(result.get("extra")).get("returncode"))
    began = as_number(extra.get("timestamp"))
    ended = as_number(as_dict(results[-1].get("extra")).get("timestamp")) if results else None
    facts = StepExtra(
        is_buggy=any(code not in (0, None) for code in codes) if codes and calls else None,
        seconds=max(0.0, ended - began) if began is not None and ended is not None else None,
    )
    return Step(
        step_id=number,
        timestamp=as_time(extra.get("timestamp")),
        source="agent",
        model_name=model,
        message=_content(message),
        reasoning_content=as_text(message.get("reasoning_content")) or None,
        tool_calls=list(calls.values()) or None,
        observation=Observation(results=observations) if observations else None,
        metrics=usage_of(as_dict(extra.get("response")).get("usage"), extra.get("cost")),
        llm_call_count=1,
        extra=facts.as_extra() or None,
    )


def _other_step(number: int, message: dict[str, Any]) -> Step:
    """Return a step of the system or user; the agent's exit is a system step."""
    role, extra = message.get("role"), as_dict(message.get("extra"))
    text = _content(message)
    if role == "exit":
        status = as_text(extra.get("exit_status"), _NAME) or "ended"
        text = f"{status}: {text}" if text and text != status else status
    return Step(
        step_id=number,
        timestamp=as_time(extra.get("timestamp")),
        source="user" if role == "user" else "system",
        message=text,
    )


def _content(message: dict[str, Any]) -> str:
    """Return the text of a message."""
    content = message.get("content")
    if isinstance(content, list):
        return as_text("\n".join(as_text(as_dict(part).get("text")) for part in content))
    return as_text(content)
