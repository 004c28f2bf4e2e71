"""The providers' own clients, unmodified, against a scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mleredux_scripted_llm import ScriptedLlm
from mleredux_support.imports import lazily

anthropic = lazily("anthropic")
openai = lazily("openai")

TOOL = {"name": "weigh", "description": "Weighs.", "parameters": {"type": "object", "properties": {}}}
RULES: dict[str, Any] = {
    "models": ["m-1", "m-2"],
    "rules": [
        {
            "name": "both",
            "when": {"tools": "weigh", "last": "weigh (?P<kilos>[0-9.]+)"},
            "reply": {
                "text": "I weigh.",
                "tools": [{"name": "weigh", "arguments": {"kilos": "<<kilos>>", "said": "é <<kilos>> kg"}}],
                "usage": {"prompt": 100, "completion": 20, "cached": 30},
            },
        },
        {"name": "result", "when": {"last": "balance: heavy"}, "reply": {"text": "It is heavy."}},
        {"name": "again", "when": {"last": "and then", "any": "long story"}, "reply": {"text": "It ended."}},
        {"name": "story", "when": {"last": "long story"}, "reply": {"text": "Once upon a time. " * 20}},
        {"name": "slow", "when": {"last": "hurry"}, "reply": {"error": {"status": 429, "retry_after": 0}}, "times": 1},
        {"name": "hurried", "when": {"last": "hurry"}, "reply": {"text": "Here."}},
        {"name": "down", "when": {"last": "fall"}, "reply": {"error": {"status": 500, "message": "Fell."}}},
        {"name": "html", "when": {"last": "html"}, "reply": {"malformed": "html"}},
        {"name": "cut", "when": {"last": "cut"}, "reply": {"text": "one two three " * 9, "malformed": "truncated"}},
        {"name": "short", "when": {"last": "short"}, "reply": {"text": "It", "finish": "length"}},
    ],
}


@pytest.fixture(scope="module")
def llm() -> Iterator[ScriptedLlm]:
    with ScriptedLlm(RULES) as running:
        yield running


@pytest.fixture
def ai(llm: ScriptedLlm, request: pytest.FixtureRequest) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{llm.url}/v1", api_key=request.node.name, max_retries=0)


@pytest.fixture
def claude(llm: ScriptedLlm, request: pytest.FixtureRequest) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=llm.url, api_key=request.node.name, max_retries=0)


def user(text: str) -> list[Any]:
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]


def test_models_are_listed_to_both_clients(ai: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    assert [model.id for model in ai.models.list()] == ["m-1", "m-2"]
    assert [model.id for model in claude.models.list()] == ["m-1", "m-2"]


def test_chat_with_a_tool_its_result_and_usage(ai: openai.OpenAI) -> None:
    tools: Any = [{"type": "function", "function": TOOL}]
    first = ai.chat.completions.create(model="m-1", messages=user("weigh 2.5 please"), tools=tools)
    (call,) = first.choices[0].message.tool_calls or ()
    assert first.choices[0].finish_reason == "tool_calls"
    assert call.type == "function"
    assert json.loads(call.function.arguments) == {"kilos": 2.5, "said": "é 2.5 kg"}
    assert first.usage is not None and first.usage.prompt_tokens_details is not None
    assert (first.usage.prompt_tokens, first.usage.completion_tokens) == (100, 20)
    assert first.usage.prompt_tokens_details.cached_tokens == 30
    messages = [
        *user("weigh 2.5 please"),
        first.choices[0].message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "balance: heavy"},
    ]
    second = ai.chat.completions.create(model="m-1", messages=messages, tools=tools)
    assert second.choices[0].message.content == "It is heavy."


def test_chat_in_a_stream(ai: openai.OpenAI) -> None:
    chunks = list(
        ai.chat.completions.create(
            model="m-1", messages=user("a long story"), stream=True, stream_options={"include_usage": True}
        )
    )
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Once upon a time. " * 20
    assert len(chunks) > 10
    assert chunks[-1].usage is not None and chunks[-1].usage.completion_tokens == 90


def test_chat_with_a_tool_in_a_stream(ai: openai.OpenAI) -> None:
    tools: Any = [{"type": "function", "function": TOOL}]
    with ai.chat.completions.stream(model="m-1", messages=user("weigh 3"), tools=tools) as stream:
        stream.until_done()
        final = stream.get_final_completion()
    (call,) = final.choices[0].message.tool_calls or ()
    assert json.loads(call.function.arguments)["kilos"] == 3


def test_responses_continue_from_one_another(ai: openai.OpenAI) -> None:
    first = ai.responses.create(model="m-1", instructions="Be brief.", input="a long story")
    assert first.output_text.startswith("Once upon")
    assert first.usage is not None and first.usage.output_tokens == 90
    second = ai.responses.create(model="m-1", input="and then?", previous_response_id=first.id)
    assert second.output_text == "It ended."


def test_responses_with_a_tool_in_a_stream(ai: openai.OpenAI) -> None:
    tools: Any = [{"type": "function", **TOOL}]
    with ai.responses.stream(model="m-1", input="weigh 4", tools=tools) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    message, call = final.output
    assert message.type == "message" and call.type == "function_call"
    assert json.loads(call.arguments)["kilos"] == 4
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    again = ai.responses.create(
        model="m-1",
        input=[
            {"role": "user", "content": "weigh 4"},
            call.model_dump(),
            {"type": "function_call_output", "call_id": call.call_id, "output": "balance: heavy"},
        ],  # type: ignore[arg-type]
    )
    assert again.output_text == "It is heavy."


def test_anthropic_with_a_tool_and_its_result(claude: anthropic.Anthropic) -> None:
    tools: Any = [{"name": "weigh", "input_schema": TOOL["parameters"]}]
    asked: Any = [{"role": "user", "content": "weigh 2.5"}]
    first = claude.messages.create(model="m-1", max_tokens=100, messages=asked, tools=tools)
    text, call = first.content
    assert text.type == "text" and text.text == "I weigh."
    assert call.type == "tool_use" and call.input == {"kilos": 2.5, "said": "é 2.5 kg"}
    assert first.stop_reason == "tool_use"
    usage = first.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (70, 30, 20)
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "balance: heavy"}]}
    asked += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    second = claude.messages.create(model="m-1", max_tokens=100, messages=asked, tools=tools)
    assert second.content[0].type == "text" and second.content[0].text == "It is heavy."


def test_anthropic_in_a_stream(claude: anthropic.Anthropic) -> None:
    tools: Any = [{"name": "weigh", "input_schema": TOOL["parameters"]}]
    asked: Any = [{"role": "user", "content": "weigh 5"}]
    with claude.messages.stream(model="m-1", max_tokens=100, messages=asked, tools=tools) as stream:
        assert "".join(stream.text_stream) == "I weigh."
        final = stream.get_final_message()
    assert final.content[1].type == "tool_use" and final.content[1].input == {"kilos": 5, "said": "é 5 kg"}
    assert final.usage.output_tokens == 20


def test_errors_are_the_protocols_own(ai: openai.OpenAI, claude: anthropic.Anthropic, llm: ScriptedLlm) -> None:
    with pytest.raises(openai.InternalServerError, match="Fell"):
        ai.chat.completions.create(model="m-1", messages=user("fall"))
    with pytest.raises(anthropic.InternalServerError, match="Fell"):
        claude.messages.create(model="m-1", max_tokens=9, messages=[{"role": "user", "content": "fall"}])
    with pytest.raises(openai.RateLimitError):
        ai.chat.completions.create(model="m-1", messages=user("hurry"))
    patient = openai.OpenAI(base_url=f"{llm.url}/v1", api_key="patient", max_retries=1)
    assert patient.chat.completions.create(model="m", messages=user("hurry")).choices[0].message.content == "Here."


def test_malformed_responses_break_clients_realistically(ai: openai.OpenAI) -> None:
    with pytest.raises((openai.APIError, json.JSONDecodeError)):
        ai.chat.completions.create(model="m-1", messages=user("cut"))
    with pytest.raises(Exception, match=r"(?i)peer closed|incomplete|connection"):
        list(ai.chat.completions.create(model="m-1", messages=user("cut"), stream=True))
    assert not hasattr(ai.chat.completions.create(model="m-1", messages=user("html")), "choices")


def test_a_reply_can_be_cut_off(ai: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    assert ai.chat.completions.create(model="m", messages=user("short")).choices[0].finish_reason == "length"
    assert ai.responses.create(model="m", input="short").status == "incomplete"
    asked: Any = [{"role": "user", "content": "short"}]
    assert claude.messages.create(model="m", max_tokens=9, messages=asked).stop_reason == "max_tokens"


def test_a_request_without_a_matching_rule_is_a_clear_error(ai: openai.OpenAI, llm: ScriptedLlm) -> None:
    with pytest.raises(openai.BadRequestError, match=r"No rule of the scenario matches.*something else"):
        ai.chat.completions.create(model="m-1", messages=user("something else"))
    assert "something else" in llm.unmatched[-1].line()
    assert "NO RULE MATCHES" in llm.unmatched[-1].line()
