"""OpenHands' events as a rollout, whatever is in the file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mleredux_agent_openhands.reader import EVENTS, USAGE, read_rollout
from mleredux_rollout import dump_rollout, parse_rollout, step_extra


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "source": "agent", "timestamp": "2026-11-21T15:43:06", **fields}


def action(call: str, response: str, command: str = "ls", **fields: Any) -> dict[str, Any]:
    arguments = json.dumps({"command": command})
    return event(
        "ActionEvent", tool_call_id=call, llm_response_id=response, tool_name="terminal",
        thought=[{"type": "text", "text": "I look."}], tool_call={"arguments": arguments}, **fields,
    )  # fmt: skip


def observation(call: str, text: str, exit_code: int = 0, **fields: Any) -> dict[str, Any]:
    seen = {"content": [{"type": "text", "text": text}], "exit_code": exit_code, "is_error": False}
    return event(
        "ObservationEvent", tool_call_id=call, tool_name="terminal", observation=seen, source="environment", **fields
    )


@pytest.fixture
def output(tmp_path: Path) -> Path:
    (tmp_path / EVENTS).parent.mkdir(parents=True)
    return tmp_path


def write(output: Path, *events: Any, usage: Any = None) -> None:
    (output / EVENTS).write_text("".join(json.dumps(item) + "\n" for item in events), encoding="utf-8")
    if usage is not None:
        (output / USAGE).write_text(json.dumps(usage), encoding="utf-8")


def test_calls_of_one_response_are_one_step_with_their_results_and_its_tokens(output: Path) -> None:
    usage = {
        "openhands_version": "1.58.0",
        "usage_to_metrics": {
            "agent": {
                "model_name": "gpt-4.1",
                "accumulated_cost": 0.3,
                "costs": [{"cost": 0.1}, {"cost": 0.2}],
                "token_usages": [
                    {"response_id": "r1", "prompt_tokens": 10, "completion_tokens": 2, "cache_read_tokens": 4},
                    {"response_id": "r2", "prompt_tokens": 20, "completion_tokens": 3, "cache_read_tokens": 0},
                ],
            }
        },
    }
    write(
        output,
        event("SystemPromptEvent", system_prompt={"type": "text", "text": "Be good."}, tools=[{"name": "terminal"}]),
        event("MessageEvent", source="user", llm_message={"content": [{"type": "text", "text": "Solve it."}]}),
        action("c1", "r1"),
        action("c2", "r1", "false"),
        observation("c2", "no", exit_code=1, timestamp="2026-11-21T15:43:08.500"),
        observation("c1", "\x1b[?2004lfile\x1b[35mname\x1b[0m"),
        event("AgentErrorEvent", tool_call_id="unknown", error="No such tool."),
        event("MessageEvent", llm_response_id="r2", llm_message={"content": [{"type": "text", "text": "Done."}]}),
        event("ConversationErrorEvent", code="Stuck", detail="in a loop"),
        usage=usage,
    )
    rollout = read_rollout(output)
    assert rollout is not None
    assert [step.source for step in rollout.steps] == ["system", "user", "agent", "system", "agent", "system"]
    both = rollout.steps[2]
    assert [call.arguments for call in both.tool_calls or ()] == [{"command": "ls"}, {"command": "false"}]
    assert both.observation is not None
    assert [(r.source_call_id, r.content) for r in both.observation.results] == [("c2", "no"), ("c1", "filename")]
    assert step_extra(both).is_buggy is True and step_extra(both).seconds == 2.5
    assert both.metrics is not None and (both.metrics.prompt_tokens, both.metrics.cost_usd) == (10, 0.1)
    assert rollout.steps[3].message == "No such tool." and rollout.steps[5].message == "Stuck: in a loop"
    total = rollout.final_metrics
    assert total is not None and (total.total_prompt_tokens, total.total_cost_usd) == (30, 0.3)
    assert (rollout.agent.version, rollout.agent.model_name) == ("1.58.0", "gpt-4.1")
    assert parse_rollout(dump_rollout(rollout)) == rollout


def test_without_events_there_is_no_rollout(tmp_path: Path, output: Path) -> None:
    assert read_rollout(tmp_path / "nothing") is None
    write(output, {"kind": "Other"}, 7, None)
    assert read_rollout(output) is None
    (output / EVENTS).unlink()
    (output / EVENTS).symlink_to("/etc/passwd")
    assert read_rollout(output) is None
    (output / EVENTS).unlink()
    os.mkfifo(output / EVENTS)
    assert read_rollout(output) is None


def test_a_log_that_was_cut_off_is_read_up_to_there(output: Path) -> None:
    write(output, action("c1", "r1"), observation("c1", "fine"))
    with (output / EVENTS).open("a") as file:
        file.write('{"kind": "ActionEvent", "thought": [{"te')
    rollout = read_rollout(output)
    assert rollout is not None and len(rollout.steps) == 1


KINDS = ("SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent")
NAMES = (
    "source", "timestamp", "thought", "tool_call_id", "llm_response_id", "tool_call", "action", "observation",
    "llm_message", "system_prompt", "tools", "error", "reasoning_content", "content", "text", "arguments",
)  # fmt: skip
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(("agent", "\ud800")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=6,
)
EVENT = st.builds(
    lambda kind, rest: {**rest, "kind": kind}, st.sampled_from(KINDS), st.dictionaries(st.sampled_from(NAMES), VALUES)
)


@settings(max_examples=40, deadline=None)
@given(events=st.lists(EVENT | VALUES, max_size=6), usage=VALUES)
def test_whatever_is_in_the_files_what_comes_out_is_a_valid_rollout(
    events: list[Any], usage: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    output = tmp_path_factory.mktemp("o")
    (output / EVENTS).parent.mkdir(parents=True)
    write(output, *events, usage={"usage_to_metrics": usage})
    rollout = read_rollout(output)
    assert rollout is None or parse_rollout(dump_rollout(rollout)).steps
