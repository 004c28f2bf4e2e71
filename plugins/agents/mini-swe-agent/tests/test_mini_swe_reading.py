"""mini-swe-agent's trajectory becomes a rollout, whatever it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mleredux_agent_mini_swe_agent.reader import read_rollout
from mleredux_rollout import InvalidRollout, Trajectory, dump_rollout, parse_rollout, step_extra


def assistant(text: str, *commands: str, at: float = 1_760_000_000.0) -> dict[str, Any]:
    """A message of the model as mini-swe-agent 2.4.6 keeps it."""
    actions = [{"command": command, "tool_call_id": f"call_{at:.0f}_{n}"} for n, command in enumerate(commands)]
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 40}}
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [],
        "extra": {"actions": actions, "response": {"usage": usage}, "cost": 0.25, "timestamp": at},
    }


def tool(call: str, output: str, code: int = 0, at: float = 1_760_000_002.0) -> dict[str, Any]:
    extra = {"raw_output": output, "returncode": code, "timestamp": at, "exception_info": ""}
    return {"role": "tool", "tool_call_id": call, "content": json.dumps({"output": output}), "extra": extra}


EXIT = {"role": "exit", "content": "", "extra": {"exit_status": "Submitted", "submission": ""}}
DOCUMENT = {
    "info": {
        "model_stats": {"instance_cost": 0.5, "api_calls": 2},
        "config": {"model": {"model_name": "openai/gpt-4.1-mini"}},
        "mini_version": "2.4.6",
        "exit_status": "Submitted",
        "submission": "",
    },
    "messages": [
        {"role": "system", "content": "You are helpful."},
        {"role": "user", "content": "Please solve this issue."},
        assistant("I look.", "ls", "python bad.py"),
        tool("call_1760000000_0", "data\n"),
        tool("call_1760000000_1", "Traceback\n", code=1),
        assistant("I am done.", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", at=1_760_000_010.0),
        EXIT,
    ],
    "trajectory_format": "mini-swe-agent-1.1",
}


def written(output: Path, document: Any) -> Path:
    (output / "logs").mkdir(exist_ok=True)
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    (output / "logs" / "mini-swe-agent.traj.json").write_bytes(content)
    return output


def valid(output: Path) -> Trajectory:
    found = read_rollout(output)
    assert found is not None
    return parse_rollout(dump_rollout(found))


def test_commands_and_what_came_of_them_are_one_step(tmp_path: Path) -> None:
    rollout = valid(written(tmp_path, DOCUMENT))
    assert (rollout.agent.version, rollout.agent.model_name) == ("2.4.6", "openai/gpt-4.1-mini")
    assert [step.source for step in rollout.steps] == ["system", "user", "agent", "agent", "system"]
    step = rollout.steps[2]
    assert step.tool_calls and step.observation and step.metrics
    assert [call.arguments["command"] for call in step.tool_calls] == ["ls", "python bad.py"]
    results = [(r.source_call_id, r.content) for r in step.observation.results]
    assert results == [("call_1760000000_0", "data\n"), ("call_1760000000_1", "Traceback\n")]
    assert (step.metrics.prompt_tokens, step.metrics.cached_tokens, step.metrics.cost_usd) == (100, 40, 0.25)
    assert step_extra(step).is_buggy is True and step_extra(step).seconds == 2
    assert rollout.steps[-1].message == "Submitted"
    assert rollout.final_metrics and rollout.final_metrics.total_prompt_tokens == 200
    assert rollout.final_metrics.total_cost_usd == 0.5


def test_commands_in_texts_have_their_results_by_place(tmp_path: Path) -> None:
    message = assistant("THOUGHT", "ls")
    message["extra"]["actions"] = [{"command": "ls"}]
    result = {**tool("", "data"), "role": "user"}
    del result["tool_call_id"]
    step = valid(written(tmp_path, {"messages": [message, result]})).steps[0]
    assert step.tool_calls and step.observation
    assert step.observation.results[0].source_call_id == step.tool_calls[0].tool_call_id


def test_an_answer_that_was_refused_is_a_step_of_its_own(tmp_path: Path) -> None:
    response = {"choices": [{"message": {"content": "No tool."}}], "usage": {"prompt_tokens": 7}}
    refusal = {
        "role": "user",
        "content": "Tool call error",
        "extra": {"interrupt_type": "FormatError", "response": response},
    }
    step = valid(written(tmp_path, {"messages": [refusal]})).steps[0]
    assert (step.source, step.message) == ("agent", "No tool.")
    assert step.metrics and step.metrics.prompt_tokens == 7
    assert step.observation and step.observation.results[0].content == "Tool call error"


def test_what_is_not_there_is_no_rollout(tmp_path: Path) -> None:
    assert read_rollout(tmp_path) is None
    assert read_rollout(written(tmp_path, {"messages": []})) is None


@pytest.mark.parametrize("data", [b"", b'{"messages": [', b"[" * 200_000])
def test_a_damaged_trajectory_is_one_error(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(InvalidRollout):
        read_rollout(written(tmp_path, data))


_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["command", "tool_call_id", "usage", "prompt_tokens", "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
_EXTRA = st.dictionaries(
    st.sampled_from(["actions", "response", "cost", "timestamp", "returncode", "raw_output", "interrupt_type"]),
    _VALUE | st.just("FormatError"),
    max_size=5,
)
_MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool", "exit", "odd"]) | _VALUE},
    optional={"content": _VALUE, "tool_call_id": _VALUE, "extra": _EXTRA | _VALUE, "reasoning_content": _VALUE},
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(messages=st.lists(_MESSAGE, max_size=5) | _VALUE, info=_VALUE)
def test_no_value_in_a_trajectory_breaks_the_rollout(messages: Any, info: Any, tmp_path: Path) -> None:
    output = written(tmp_path, {"messages": messages, "info": info})
    if read_rollout(output) is not None:
        valid(output)
