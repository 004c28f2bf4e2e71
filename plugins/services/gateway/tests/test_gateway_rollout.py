"""Rollouts created only from the record of calls."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from mleredux_gateway.trajectory import make_trajectory
from mleredux_rollout import Trajectory, check_rollout

SYSTEM = {"role": "system", "content": "You are an engineer."}
TASK = {"role": "user", "content": "Solve it."}


def call(number: int, messages: list[Any], reply: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A line of the record, in the chat protocol."""
    request = {"model": "m", "messages": messages, **more.pop("request", {})}
    return {
        "call": number,
        "time": f"2026-01-01T00:00:{number:02d}+00:00",
        "seconds": 0.5,
        "kind": "chat",
        "model": "m",
        "status": 200,
        "failed": False,
        "prompt_tokens": 100,
        "cached_tokens": 10,
        "completion_tokens": 5,
        "estimated": False,
        "cost_usd": 0.25,
        "request": request,
        "response": {"choices": [{"message": {"role": "assistant", **reply}}]},
        **more,
    }


def made(*calls: dict[str, Any]) -> Trajectory:
    found = make_trajectory(calls, "talker", "3", "run-1")
    assert found is not None
    return found


def told(trajectory: Trajectory) -> list[tuple[str, Any]]:
    return [(step.source, step.message) for step in trajectory.steps]


def use(identity: str, command: str) -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": "bash", "arguments": json.dumps({"c": command})}}


def result(identity: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identity, "content": text}


def test_a_growing_conversation_becomes_steps_with_tools_and_their_results():
    first = {"content": "I look.", "tool_calls": [use("1", "ls"), use("2", "pwd")]}
    second = {"content": None, "tool_calls": [use("3", "ls")], "reasoning_content": "Hm."}
    history = [SYSTEM, TASK, {"role": "assistant", **first}, result("1", "a.csv"), result("2", "/output")]
    tools = [{"type": "function", "function": {"name": "bash", "parameters": {}}}]
    trajectory = made(
        call(1, [SYSTEM, TASK], first, request={"tools": tools}),
        call(2, history, second),
        call(3, [*history, {"role": "assistant", **second}, result("3", "b.csv")], {"content": "Done."}),
    )
    assert told(trajectory) == [
        ("system", "You are an engineer."),
        ("user", "Solve it."),
        ("agent", "I look."),
        ("agent", ""),
        ("agent", "Done."),
    ]
    looked, again, _ = trajectory.steps[2:]
    assert [(one.tool_call_id, one.arguments) for one in looked.tool_calls] == [("1", {"c": "ls"}), ("2", {"c": "pwd"})]
    assert [(one.source_call_id, one.content) for one in looked.observation.results] == [
        ("1", "a.csv"),
        ("2", "/output"),
    ]
    assert [step.extra["seconds"] for step in (looked, again)] == [0.5, 0.5], "from the answer until the next request"
    assert looked.metrics.extra["seconds"] == 0.5 and trajectory.steps[-1].extra.get("seconds") is None
    assert again.reasoning_content == "Hm." and again.observation.results[0].content == "b.csv"
    assert looked.metrics.prompt_tokens == 100 and looked.metrics.cost_usd == 0.25
    assert trajectory.agent.tool_definitions[0]["function"]["name"] == "bash"
    final = trajectory.final_metrics
    assert (final.total_prompt_tokens, final.total_completion_tokens, final.total_cost_usd) == (300, 15, 0.75)


def test_calls_that_start_over_each_time_repeat_nothing():
    """As in a tree search: the same instructions, different code."""
    trajectory = made(
        call(1, [SYSTEM, TASK], {"content": "draft"}),
        call(2, [SYSTEM, TASK, {"role": "user", "content": "Your code failed."}], {"content": "fix"}),
        call(3, [SYSTEM, TASK], {"content": "draft"}),
    )
    assert [message for _, message in told(trajectory)] == [
        "You are an engineer.",
        "Solve it.",
        "draft",
        "Your code failed.",
        "fix",
        "draft",
    ]


def test_an_agent_may_drop_the_middle_and_rewrite_replies():
    replies = [f"<think>long thoughts</think> answer number {i}, at length" for i in range(3)]
    trajectory = made(
        call(1, [SYSTEM, TASK], {"content": replies[0]}),
        call(2, [SYSTEM, TASK, assistant(replies[0]), say("go on")], {"content": replies[1]}),
        call(
            3, [SYSTEM, assistant("answer number 1, at length "), say("go on"), say("go on")], {"content": replies[2]}
        ),
    )
    assert [message for _, message in told(trajectory)] == [
        "You are an engineer.",
        "Solve it.",
        replies[0],
        "go on",
        replies[1],
        "go on",
        replies[2],
    ]


def test_an_example_that_the_model_did_not_say_is_copied_context():
    trajectory = made(call(1, [SYSTEM, say("2+2?"), assistant("It is four."), TASK], {"content": "Well."}))
    example = trajectory.steps[2]
    assert example.message == "It is four." and example.is_copied_context and example.llm_call_count == 0
    assert trajectory.steps[-1].llm_call_count == 1


def test_failed_calls_are_counted_but_not_steps_and_refusals_are_reported():
    trajectory = made(
        call(1, [SYSTEM, TASK], {"content": "x"}, status=500, failed=True, response={"error": {}}),
        call(2, [SYSTEM, TASK], {"content": "draft"}),
        {"call": 3, "time": "2026-01-01T00:00:03+00:00", "refused": "llm_calls", "error": "The budget is used up."},
    )
    assert [source for source, _ in told(trajectory)] == ["system", "user", "agent", "system"]
    assert trajectory.steps[-1].message.endswith("The budget is used up.")
    assert trajectory.final_metrics.extra == {"llm_calls": 2, "failed_calls": 1, "refused_calls": 1}


def test_without_an_answered_call_there_is_none():
    assert make_trajectory([], "talker", "3") is None
    assert make_trajectory([call(1, [TASK], {}, status=500)], "talker", "3") is None


@pytest.mark.parametrize(
    "reply",
    [
        {"content": None, "tool_calls": [{"id": None, "function": {"name": None, "arguments": "{"}}]},
        {"content": [{"type": "text", "text": "a"}, {"type": "image_url"}, 5, None], "tool_calls": "x"},
        {"content": 7},
        {"content": {"text": ["a", {"text": "b"}]}},
        {"tool_calls": [use("1", "ls"), use("1", "ls")]},
    ],
)
def test_any_provider_response_gives_a_valid_document(reply, tmp_path):
    trajectory = made(call(1, [TASK, "no message", {"role": 5}, result("9", "stray")], reply))
    (tmp_path / "it.json").write_text(trajectory.model_dump_json(exclude_none=True))
    assert check_rollout(tmp_path / "it.json") == []


def test_all_protocols_give_the_same_trajectory(opened, tmp_path):
    """One conversation with a tool, by each of the real clients."""
    schema = {"type": "object", "properties": {}}
    agent = opened()
    tools: Any = [{"type": "function", "function": {"name": "weigh", "parameters": schema}}]
    asked: Any = [SYSTEM, say("weigh it")]
    reply = agent.ai.chat.completions.create(model="priced", messages=asked, tools=tools).choices[0].message
    asked += [reply, {"role": "tool", "tool_call_id": reply.tool_calls[0].id, "content": "2 kg"}]
    agent.ai.chat.completions.create(model="priced", messages=asked, tools=tools)
    chat = _finished(agent)

    agent = opened()
    tools = [{"name": "weigh", "input_schema": schema}]
    asked = [say("weigh it")]
    more: Any = {"model": "priced", "max_tokens": 99, "system": SYSTEM["content"], "tools": tools}
    with agent.claude.messages.stream(messages=asked, **more) as stream:
        message = stream.get_final_message()
    answer = {"type": "tool_result", "tool_use_id": message.content[1].id, "content": "2 kg"}
    asked += [{"role": "assistant", "content": message.content}, {"role": "user", "content": [answer]}]
    agent.claude.messages.create(messages=asked, **more)
    claude = _finished(agent)

    agent = opened()
    tools = [{"type": "function", "name": "weigh", "parameters": schema}]
    first: Any = [say("weigh it")]
    more = {"model": "priced", "instructions": SYSTEM["content"], "tools": tools}
    response = agent.ai.responses.create(input=first, **more)
    output = {"type": "function_call_output", "call_id": response.output[1].call_id, "output": "2 kg"}
    agent.ai.responses.create(input=[*first, *(item.model_dump() for item in response.output), output], **more)
    responses = _finished(agent)

    assert chat == claude == responses
    assert [source for source, *_ in chat] == ["system", "user", "agent", "agent"]
    assert chat[2] == ("agent", "I weigh.", ["weigh"], [{"kilos": 2}], ["2 kg"])


def _finished(agent: Any) -> list[tuple[Any, ...]]:
    agent.close()
    path: Path = agent.run.path / "llm" / "trajectory.json"
    assert check_rollout(path) == []
    trajectory = Trajectory.model_validate_json(path.read_bytes())
    return [
        (
            step.source,
            step.message,
            [one.function_name for one in step.tool_calls or ()],
            [one.arguments for one in step.tool_calls or ()],
            [one.content for one in step.observation.results] if step.observation else [],
        )
        for step in trajectory.steps
    ]


def say(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def test_steps_are_there_while_the_run_goes_on(opened, monkeypatch):
    monkeypatch.setattr("mleredux_gateway.endpoint._PAUSE", 0.05)
    agent = opened()
    path = agent.run.path / "llm" / "trajectory.json"
    for count in (1, 2):
        agent.say(f"hello {count}")
        deadline = time.monotonic() + 30
        while not path.is_file() or len(json.loads(path.read_bytes())["steps"]) < 2 * count:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert [step.source for step in Trajectory.model_validate_json(path.read_bytes()).steps] == ["user", "agent"] * 2
