"""A run is repeated from its record: offline, with the same answers; what differs is said where it does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from mleredux._core.plugins import current
from mleredux_agentkit import is_final
from mleredux_gateway.replay import Replay, difference
from mleredux_gateway.scenario import SCENARIO
from mleredux_rollout.exports import ExportedRun
from mleredux_scripted_llm import ScriptedLlm
from mleredux_scripted_llm.scenario import load_scenario
from mleredux_support.imports import lazily

openai = lazily("openai")

WEIGH: Any = {"name": "weigh", "description": "Weighs.", "parameters": {"type": "object", "properties": {}}}


def user(text: str) -> Any:
    return [{"role": "user", "content": text}]


def talk(agent: Any) -> list[Any]:
    """Ask by all protocols, in streams and without; what an agent gets, and without ids."""
    heard: list[Any] = []
    for stream in (False, True):
        more: Any = {"stream": stream, "tools": [{"type": "function", "function": WEIGH}]}
        found = agent.ai.chat.completions.create(model="priced", messages=user("weigh"), **more)
        if stream:
            chunks = list(found)
            assert all(chunk.choices for chunk in chunks), "usage was not requested"
            deltas = [chunk.choices[0].delta for chunk in chunks]
            heard.append("".join(delta.content or "" for delta in deltas))
            called = [call for delta in deltas for call in delta.tool_calls or []]
            heard.append("".join(call.function.arguments or "" for call in called))
        else:
            heard += [found.choices[0].message.content, found.choices[0].message.tool_calls[0].function.arguments]
    where = f"Write to {agent.run.path}/output, then ask {agent.environment['OPENAI_BASE_URL']}."
    heard.append(agent.ai.responses.create(model="priced", input=where).output_text)
    with agent.ai.responses.stream(model="priced", input=where) as events:
        heard.append(events.get_final_response().output_text)
    heard.append(agent.claude.messages.create(model="priced", max_tokens=99, messages=user("hello")).content[0].text)
    tools: Any = [{"name": "weigh", "input_schema": {"type": "object", "properties": {}}}]
    with agent.claude.messages.stream(model="priced", max_tokens=99, messages=user("weigh"), tools=tools) as events:
        heard += [getattr(block, "input", None) or block.text for block in events.get_final_message().content]
    with pytest.raises(openai.AuthenticationError):
        agent.say("leak")
    return heard


@pytest.fixture
def again(opened: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`again(agent)` opens a run that repeats another, without any upstream."""

    def make(agent: Any) -> Any:
        for name in ("MLEREDUX_GATEWAY_CONFIG", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            monkeypatch.delenv(name, raising=False)
        return opened(replay=agent.run.id)

    return make


def test_all_protocols_are_repeated_offline_and_free(opened: Any, again: Any, upstream: Any) -> None:
    agent = opened()
    heard = talk(agent)
    use = agent.close()
    asked = len(upstream.calls)
    other = again(agent)
    assert talk(other) == heard
    repeated = other.close()
    assert len(upstream.calls) == asked, "a model was asked"
    assert (repeated.replay, repeated.repeated, repeated.differences) == (agent.run.id, use.calls, ())
    assert (repeated.calls, repeated.failed) == (use.calls, use.failed)
    assert repeated.cost_usd == 0 and repeated.prompt_tokens == use.prompt_tokens
    assert repeated.hosts == (agent.run.id,)


def test_what_differs_is_said_at_its_step(opened: Any, again: Any) -> None:
    agent = opened()
    answers = [agent.say(text) for text in ("hello one", "hello two", "hello two")]
    agent.close()
    other = again(agent)
    assert [other.say(text) for text in ("hello one", "hello two")] == answers[:2]
    with pytest.raises(openai.PermissionDeniedError) as told:
        other.say("hello three")
    said = (
        f"Call 3 differs from call 3 of {agent.run.id} at messages[0].content: "
        "it was “hello two”, and is now “hello three”."
    )
    assert said in str(told.value)
    assert is_final(told.value.status_code, said), "agents must not ask again"
    use = other.close()
    assert use.repeated == 2
    assert use.differences == (said, f"Not repeated: 1 call of {agent.run.id}.")
    assert [event.data["message"] for event in other.run.events() if event.type == "warning"] == list(use.differences)


def test_a_difference_is_told_by_its_place() -> None:
    before = {"messages": [{"role": "user", "content": "a" * 300 + "b"}], "tools": []}
    now = {"messages": [{"role": "user", "content": "a" * 300 + "c"}], "tools": []}
    assert difference(before, now) == ("messages[0].content", f"“…{'a' * 20}b”", f"“…{'a' * 20}c”")
    assert difference({"m": [1]}, {"m": [1, 2]}) == ("m[1]", "nothing", "“[2]”")
    assert difference({"m": 1}, {"m": 1, "t": 0.5}) == ("t", "nothing", "“0.5”")


def test_a_scenario_made_from_a_run_answers_alike(opened: Any, tmp_path: Path) -> None:
    agent = opened()
    heard = talk(agent)
    agent.close()
    path = tmp_path / "scenario.yaml"
    path.write_bytes(b"".join(SCENARIO.write([ExportedRun(agent.run, current(), ())], {})))
    assert len(yaml.safe_load(path.read_text())["rules"]) == 7
    with ScriptedLlm(load_scenario(path)) as llm:
        agent.environment = {"OPENAI_BASE_URL": f"{llm.url}/v1", "ANTHROPIC_BASE_URL": llm.url, "OPENAI_API_KEY": "k"}
        agent.__dict__.pop("ai"), agent.__dict__.pop("claude")
        assert talk(agent) == heard
        assert not llm.unmatched
    assert json.dumps(heard)


@pytest.mark.parametrize("name", ["client_metadata", "metadata", "store", "stream", "user"])
def test_what_differs_between_any_two_runs_is_replaced_in_answers(name: str) -> None:
    def asked(number: int) -> Any:
        place = (
            f"/tmp/mleredux-0-links/{number:016x}/home at 127.0.0.1:{8000 + number} of run-{number} in /runs/{number}"
        )
        return {"model": "m", "messages": user(place), name: number}

    def answered(number: int) -> Any:
        return {"content": f"cd /tmp/mleredux-0-links/{number:016x}; ls /runs/{number}; curl localhost:99"}

    calls = [{"call": 1, "kind": "chat", "status": 200, "request": asked(1), "response": answered(1)}]
    replay = Replay("run-1", calls, [("/runs/1", "/runs/2"), ("run-1", "run-2")], str)
    call = replay.answer("chat", asked(2))
    assert isinstance(call, dict) and call["response"] == answered(2), replay.differences


def test_ids_of_items_are_ignored_unless_they_are_references() -> None:
    def asked(number: int, kind: str) -> Any:
        items = [{"type": "message", "id": f"msg_{number}", "content": "hello"}, {"type": kind, "id": f"out_{number}"}]
        return {"model": "m", "input": items}

    calls = [
        {"call": 1, "kind": "responses", "status": 200, "request": asked(1, kind), "response": {}}
        for kind in ("function_call_output", "item_reference")
    ]
    replay = Replay("run-1", calls, (), str)
    assert isinstance(replay.answer("responses", asked(2, "function_call_output")), dict)
    assert "at input[1].id" in str(replay.answer("responses", asked(2, "item_reference")))


def test_a_call_whose_answer_was_not_recorded_is_a_difference() -> None:
    asked = {"model": "m", "messages": user("hello")}
    calls = [{"call": 4, "kind": "chat", "status": 200, "request": asked, "response": None}]
    replay = Replay("run-1", calls, (), str)
    said = replay.answer("chat", asked)
    assert said == "Call 1 can't be repeated: run-1 received no response to it."
    assert (replay.differences, replay.repeated, replay.left) == ([said], 0, 0)
