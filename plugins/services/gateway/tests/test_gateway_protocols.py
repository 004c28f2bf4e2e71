"""Agents' view of the gateway: the providers' own clients, unmodified, as if they called the provider."""

from __future__ import annotations

import contextlib
import http.client
import socket
import time
from typing import Any

import httpx
import pytest
from mleredux_rollout import read_rollout
from mleredux_support.imports import lazily
from mleredux_support.lab import until

anthropic = lazily("anthropic")
openai = lazily("openai")

WEIGH = {"name": "weigh", "description": "Weighs.", "parameters": {"type": "object", "properties": {}}}
CLAUDES_WEIGH: Any = {"name": "weigh", "input_schema": {"type": "object", "properties": {}}}


def user(text: str) -> Any:
    return [{"role": "user", "content": text}]


def test_chat_with_tools_is_forwarded_counted_and_priced(opened):
    agent = opened()
    tools: Any = [{"type": "function", "function": WEIGH}]
    answer = agent.ai.chat.completions.create(model="priced", messages=user("weigh"), tools=tools)
    assert answer.choices[0].message.tool_calls[0].function.arguments == '{"kilos": 2}'
    use = agent.close()
    assert (use.calls, use.prompt_tokens, use.cached_tokens, use.completion_tokens) == (1, 1000, 400, 10)
    assert use.cost_usd == pytest.approx((600 * 10 + 400 * 1 + 10 * 100) / 1e6)
    assert use.models == ("priced",) and use.hosts[0].startswith("127.0.0.1:")
    assert use.exhausted is None and use.failed == use.refused == 0


def test_a_stream_comes_piece_by_piece_and_is_counted_though_the_agent_requested_no_usage(opened):
    agent = opened()
    times, text = [], ""
    for chunk in agent.ai.chat.completions.create(model="priced", messages=user("dripping"), stream=True):
        times.append(time.monotonic())
        assert chunk.choices, "a chunk of usage was not requested"
        text += chunk.choices[0].delta.content or ""
    assert text == "drip " * 30
    assert times[-1] - times[0] > 0.5, "it came in one piece"
    use = agent.close()
    assert (use.prompt_tokens, use.completion_tokens) == (5, 5)
    (call,) = agent.calls()
    assert call["response"]["choices"][0]["message"]["content"] == text
    assert call["stream"] and call["seconds"] - call["first_byte_seconds"] > 0.5
    assert "stream_options" not in call["request"]


def test_usage_in_a_stream_comes_if_requested(opened):
    agent = opened()
    chunks = list(
        agent.ai.chat.completions.create(
            model="priced", messages=user("hello"), stream=True, stream_options={"include_usage": True}
        )
    )
    assert chunks[-1].usage.total_tokens == 120


def test_responses_complete_and_in_a_stream(opened):
    agent = opened()
    tools: Any = [{"type": "function", **WEIGH}]
    first = agent.ai.responses.create(model="priced", input="hello")
    assert first.output_text.startswith("Hello.")
    with agent.ai.responses.stream(model="priced", input="weigh", tools=tools, previous_response_id=first.id) as stream:
        kinds = [event.type for event in stream]
    assert kinds[-1] == "response.completed"
    use = agent.close()
    assert (use.calls, use.prompt_tokens, use.cached_tokens, use.completion_tokens) == (2, 1100, 400, 30)
    assert agent.calls()[1]["response"]["output"][1]["name"] == "weigh"


def test_anthropic_complete_and_in_a_stream(opened):
    agent = opened()
    whole = agent.claude.messages.create(model="priced", max_tokens=99, messages=user("weigh"), tools=[CLAUDES_WEIGH])
    assert whole.content[1].input == {"kilos": 2}
    with agent.claude.messages.stream(
        model="priced", max_tokens=99, messages=user("weigh"), tools=[CLAUDES_WEIGH]
    ) as stream:
        final = stream.get_final_message()
    assert final.content[1].input == {"kilos": 2}
    assert agent.claude.messages.count_tokens(model="priced", messages=user("hello you")).input_tokens > 0
    use = agent.close()
    assert (use.calls, use.prompt_tokens, use.cached_tokens, use.completion_tokens) == (2, 2000, 800, 20)
    one, two = ([{**block, "id": None} for block in call["response"]["content"]] for call in agent.calls())
    assert one == two


def test_only_offered_models_are_listed(opened):
    agent = opened()
    assert {model.id for model in agent.ai.models.list()} == {"alias", "priced", "unpriced"}
    assert {model.id for model in agent.claude.models.list()} == {"priced"}


def test_a_model_can_have_another_name_for_agents(opened, upstream):
    agent = opened()
    assert agent.say(model="alias").startswith("Hello")
    assert upstream.calls[-1].model == "priced"
    assert upstream.calls[-1].conversation == agent.run.id
    assert agent.close().cost_usd > 0


def test_a_model_that_is_not_offered_is_an_error_of_the_protocol(opened):
    agent = opened()
    with pytest.raises(openai.NotFoundError, match="does not offer the model 'secret-model'"):
        agent.say(model="secret-model")
    with pytest.raises(anthropic.NotFoundError, match="does not offer the model"):
        agent.claude.messages.create(model="gpt-4o", max_tokens=9, messages=user("hello"))
    use = agent.close()
    assert (use.calls, use.refused) == (0, 2)


def test_errors_of_the_upstream_reach_the_agent_and_count_as_failed(opened):
    agent = opened()
    with pytest.raises(openai.AuthenticationError, match=r"Wrong key \*\*\*\*\*"):
        agent.say("leak")
    with pytest.raises(anthropic.AuthenticationError, match=r"Wrong key \*\*\*\*\*"):
        agent.claude.messages.create(model="priced", max_tokens=9, messages=user("leak"))
    use = agent.close()
    assert (use.calls, use.failed, use.prompt_tokens, use.cost_usd) == (2, 2, 0, 0)


def test_an_upstream_that_is_down_is_an_error_of_the_protocol(opened, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    (tmp_path / "gateway.toml").write_text(
        f'[upstreams.gone]\nprotocol = "openai"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
    )
    agent = opened()
    with pytest.raises(openai.InternalServerError, match="is unreachable"):
        agent.ai.with_options(max_retries=0).chat.completions.create(model="any", messages=user("hello"))
    assert agent.close().failed == 1


def test_an_interrupted_stream_is_interrupted_for_the_agent_too_and_estimated(opened):
    agent = opened()
    with pytest.raises(openai.APIConnectionError):
        list(agent.ai.chat.completions.create(model="priced", messages=user("torn"), stream=True))
    use = agent.close()
    assert use.failed == 1 and use.completion_tokens > 10
    assert agent.calls()[0]["estimated"]


def test_an_agent_that_disconnects_pays_for_the_whole_answer(opened):
    agent = opened()
    stream = agent.ai.chat.completions.create(model="priced", messages=user("dripping"), stream=True)
    for _, _chunk in zip(range(5), stream, strict=False):
        pass
    stream.close()
    until(agent.calls)  # the gateway reads on, but not for long once it closes
    use = agent.close()
    assert use.calls == 1 and use.failed == 0
    assert use.completion_tokens == 5 and not agent.calls()[0]["estimated"], "it was read to its end"


@pytest.mark.parametrize("key", ["sk-mleredux-" + "0" * 48, "another run's"])
def test_only_the_runs_own_key_opens_it(opened, key):
    agent, other = opened(), opened()
    key = other.token if key == "another run's" else key
    with httpx.Client(base_url=agent.gateway.url) as client:
        for headers in ({"Authorization": f"Bearer {key}"}, {"X-Api-Key": key}, {}):
            for path in ("/v1/chat/completions", "/v1/messages", "/budget"):
                assert client.post(path, headers=headers, json={"model": "priced"}).status_code == 401
    assert agent.token != other.token
    assert agent.close().calls == 0


def test_other_endpoints_are_not_found(opened):
    agent = opened()
    headers = {"Authorization": f"Bearer {agent.token}"}
    client = httpx.Client(base_url=agent.gateway.url, headers=headers)
    for method, path in [
        ("POST", "/v1/files"),
        ("GET", "/v1/responses/resp_1"),
        ("DELETE", "/v1/responses/resp_1"),
        ("GET", "/v1/organization/api_keys"),
        ("POST", "/v1/chat/completions/../files"),
        ("POST", "/v1/batches"),
    ]:
        assert client.request(method, path).status_code == 404, path
    deep = b'{"model": "priced", "metadata": ' + b"[" * 990 + b"]" * 990 + b"}"
    for body in (b"", b"[]", b"{", b"\xff", b"[" * 100_000, deep, b'{"model": "priced", "top_p": NaN}'):
        assert client.post("/v1/chat/completions", content=body).status_code == 400
    client.close()


def test_both_sockets_respond(opened):
    agent = opened()
    transport = httpx.HTTPTransport(uds=str(next(iter(_sockets(agent)))))
    with httpx.Client(transport=transport) as client:
        answer = client.get("http://gateway/budget", headers={"Authorization": f"Bearer {agent.token}"})
    assert answer.json()["llm_calls"] == {"used": 0, "limit": None}


def test_an_agent_that_opens_too_many_connections_harms_only_itself(opened):
    agent, other = opened(), opened()
    port = int(agent.gateway.url.rpartition(":")[2])
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(300)]
        many[-1].settimeout(60)
        assert many[-1].recv(1) == b"", "it was closed immediately"
        assert other.say() and many[0].fileno() > 0
    assert agent.say().startswith("Hello"), "it has room again"


def test_requests_of_unreasonable_size_are_refused_before_they_are_read(opened):
    agent = opened()
    connection = http.client.HTTPConnection(agent.gateway.url.removeprefix("http://"))
    connection.putrequest("POST", "/v1/messages")
    connection.putheader("X-Api-Key", agent.token)
    connection.putheader("Content-Length", str(1 << 40))
    connection.endheaders(b"{}")
    assert connection.getresponse().status == 413
    connection.close()


def _sockets(agent: Any) -> list[Any]:
    import psutil

    return [c.laddr for c in psutil.Process().net_connections("unix") if str(c.laddr).endswith(".sock")]


def test_generate_content_complete_and_in_a_stream(opened, upstream):
    agent = opened()
    asked: dict[str, Any] = {
        "systemInstruction": {"parts": [{"text": "You weigh things."}]},
        "contents": [{"role": "user", "parts": [{"text": "weigh"}]}],
        "tools": [
            {"functionDeclarations": [{**WEIGH, "parameters": None, "parametersJsonSchema": {"type": "object"}}]}
        ],
        "generationConfig": {"maxOutputTokens": 99, "thinkingConfig": {"thinkingBudget": -1}},
    }
    headers = {"X-Goog-Api-Key": agent.token}
    url = f"{agent.environment['GOOGLE_GEMINI_BASE_URL']}/v1beta/models"
    with httpx.Client(headers=headers) as client:
        assert [model["name"] for model in client.get(url).json()["models"]] == ["models/priced"]
        whole = client.post(f"{url}/priced:generateContent", json=asked).json()
        said, call = whole["candidates"][0]["content"]["parts"]
        assert (said["text"], call["functionCall"]["args"]) == ("I weigh.", {"kilos": 2})
        asked["contents"] += [
            whole["candidates"][0]["content"],
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "own", "name": "weigh", "response": {"output": "2 kg: weigh"}}}],
            },
        ]
        streamed = client.post(f"{url}/priced:streamGenerateContent?alt=sse", json=asked)
        assert streamed.headers["Content-Type"].startswith("text/event-stream")
        assert streamed.text.count("data: ") == 2 and "functionCall" in streamed.text
        assert client.post(f"{url}/priced:countTokens", json={"contents": asked["contents"]}).json()["totalTokens"] > 0
        # As everywhere: only what is offered, nothing that runs on the provider's side, no other forms of the call.
        for path, more, status, message in (
            ("other:generateContent", {}, 404, "does not offer the model 'other'"),
            ("priced:generateContent", {"tools": [{"googleSearch": {}}]}, 400, "tools.googleSearch"),
            ("priced:generateContent", {"cachedContent": "cachedContents/1"}, 400, "cachedContent"),
            (
                "priced:generateContent",
                {"contents": [{"parts": [{"fileData": {"fileUri": "https://example.org/a"}}]}]},
                400,
                "contents.parts.fileData",
            ),
            ("priced:streamGenerateContent", {}, 400, "alt=sse"),
            ("priced:embedContent", {}, 404, "is not supported"),
        ):
            refused = client.post(f"{url}/{path}", json={**asked, **more})
            assert refused.status_code == status and message in refused.json()["error"]["message"], refused.text
            assert refused.json()["error"]["status"] in ("INVALID_ARGUMENT", "NOT_FOUND")
    sent = upstream.calls[-1].body
    assert sent["generationConfig"] == asked["generationConfig"] and sent["contents"] == asked["contents"]
    use = agent.close()
    assert (use.calls, use.prompt_tokens, use.cached_tokens, use.completion_tokens) == (2, 2000, 800, 20)
    assert use.cost_usd == pytest.approx(2 * (600 * 10 + 400 * 1 + 10 * 100) / 1e6)
    one, two = (call["response"]["candidates"][0]["content"]["parts"] for call in agent.calls()[:2])
    assert [part.get("text") for part in one] == [part.get("text") for part in two] == ["I weigh.", None]
    rollout = read_rollout(agent.run.path / "llm" / "trajectory.json")
    assert [step.source for step in rollout.steps] == ["system", "user", "agent", "agent", "system"]
    assert rollout.steps[2].observation.results[0].content == "2 kg: weigh"
    assert rollout.agent.tool_definitions[0]["function"]["parameters"] == {"type": "object"}
    # A budget bounds the answer in the request, and a replay answers both forms without the provider.
    limited = opened(llm_tokens=20_000)
    base = limited.environment["GOOGLE_GEMINI_BASE_URL"]
    del asked["generationConfig"]
    httpx.post(f"{base}/v1beta/models/priced:generateContent", json=asked, headers={"X-Goog-Api-Key": limited.token})
    assert 0 < upstream.calls[-1].body["generationConfig"]["maxOutputTokens"] < 20_000
    calls, again = len(upstream.calls), opened(replay=agent.run.id)
    base = again.environment["GOOGLE_GEMINI_BASE_URL"]
    asked["generationConfig"] = {"maxOutputTokens": 99, "thinkingConfig": {"thinkingBudget": -1}}
    path = f"{base}/v1beta/models/priced:streamGenerateContent?alt=sse"
    repeated = httpx.post(path, json=asked, headers={"X-Goog-Api-Key": again.token})
    assert '"functionCall"' in repeated.text and len(upstream.calls) == calls
