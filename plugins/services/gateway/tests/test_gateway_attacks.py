"""Attacks on budgets, in front of a provider that counts by itself: what it bills never exceeds them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from mleredux.models.events import Warned

sys.path.insert(0, str(Path(__file__).parent))
from billing_provider import TURNED_AWAY, Bill, billing  # type: ignore[import-not-found]

pytestmark = pytest.mark.attack

CONFIG = """
[upstreams.counting]
protocol = "openai"
base_url = "{url}/v1"
[upstreams.claude]
protocol = "anthropic"
base_url = "{url}"
[prices.big]
input = 10.0
output = 100.0
max_output = 128000
[prices.plain]
input = 10.0
output = 100.0
"""
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


@pytest.fixture(scope="module")
def counting() -> Iterator[tuple[str, Bill]]:
    with billing() as served:
        yield served


@pytest.fixture
def bill(counting: tuple[str, Bill], configured: None, tmp_path: Path) -> Bill:
    """The provider's bill, at zero."""
    url, found = counting
    (tmp_path / "gateway.toml").write_text(CONFIG.format(url=url))
    found.tokens = found.calls = 0
    found.cost, found.density = 0.0, 0.25
    found.bodies.clear()
    found.waiter.clear()
    return found


def body_of(kind: str, plan: dict[str, Any] | None = None, model: str = "big", **more: Any) -> dict[str, Any]:
    text = json.dumps(plan or {})
    said = {"input": text} if kind == "responses" else {"messages": [{"role": "user", "content": text}]}
    return {"model": model, **said, **more}


def send(agent: Any, kind: str, body: dict[str, Any], hang_up: int | None = None) -> int:
    """Return the status; `hang_up` is the number of bytes of the answer after which the agent leaves."""
    data, port = json.dumps(body).encode(), int(agent.gateway.url.rpartition(":")[2])
    head = f"POST {PATHS[kind]} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {agent.token}\r\nConnection: close\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        came = b""
        while (hang_up is None or len(came) < hang_up) and (part := connection.recv(65536 if hang_up is None else 64)):
            came += part
    return int(came.split()[1]) if came else 0


def together(agent: Any, count: int, kind: str, body: dict[str, Any], hang_up: int | None = None) -> list[int]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda _: send(agent, kind, body, hang_up), range(count)))


@pytest.mark.parametrize("limits", [{"llm_tokens": 200_000}, {"llm_cost_usd": 2.0}])
def test_parallel_calls_that_name_no_maximum(opened, bill, limits):
    agent = opened(**limits)
    statuses = together(agent, 100, "chat", body_of("chat"))
    assert set(statuses) == {200, 403}
    use = agent.close()
    assert 0 < bill.tokens <= limits.get("llm_tokens", bill.tokens) and bill.cost <= limits.get("llm_cost_usd", 1e9)
    assert use.prompt_tokens + use.completion_tokens >= bill.tokens and use.cost_usd >= bill.cost * (1 - 1e-9)
    assert all(body["max_tokens"] <= 128_000 for body in bill.bodies), "every request told a maximum"


@pytest.mark.parametrize("short", [0, 3])
@pytest.mark.parametrize("kind", PATHS)
def test_a_provider_that_ignores_the_maximum_gets_one_call_at_a_time_and_is_named(opened, bill, kind, short):
    """Short answers before, which any provider gives, change nothing."""
    agent = opened(llm_tokens=100_000)
    names = {"responses": "max_output_tokens"}
    for _ in range(short):
        assert send(agent, kind, body_of(kind, {"ignore": 5}, **{names.get(kind, "max_tokens"): 1_000})) == 200
    body = body_of(kind, {"ignore": 3_000}, **{names.get(kind, "max_tokens"): 1_000})
    statuses = together(agent, 60, kind, body)
    use = agent.close()
    assert set(statuses) == {200, 403} and use.excess_tokens >= 2_000 * statuses.count(200)
    assert bill.tokens - 100_000 <= 4 * 2_000, "at most the excess of the calls that were in progress when it was seen"
    [said] = [event.payload.message for event in agent.run.events() if isinstance(event.payload, Warned)]
    assert "returned 2,000 tokens more than" in said
    assert sum(call.get("excess_tokens", 0) for call in agent.calls()) == use.excess_tokens


def test_one_call_with_many_answers_and_an_enormous_maximum(opened, bill):
    agent = opened(llm_cost_usd=0.01)
    assert send(agent, "chat", body_of("chat", n=128, max_tokens=128_000)) == 403
    assert send(agent, "chat", body_of("chat", max_tokens=10**9)) == 200, "its maximum is lowered"
    agent.close()
    assert 0 < bill.cost <= 0.01


@pytest.mark.parametrize("n", [100, 100.0])
def test_the_number_of_answers_is_counted_however_it_is_written(opened, bill, n):
    agent = opened(llm_tokens=200_000)
    together(agent, 50, "chat", body_of("chat", n=n, max_tokens=1000))
    agent.close()
    assert 0 < bill.tokens <= 200_000


@pytest.mark.parametrize("name", ["n", "max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("value", ["100", True, -1, 0, 1.5, 1e300, [2]])
def test_numbers_that_are_none_are_an_error_of_the_protocol(opened, bill, name, value):
    agent = opened(llm_tokens=200_000)
    assert send(agent, "chat", body_of("chat", **{name: value})) == 400
    agent.close()
    assert bill.calls == 0


@pytest.mark.parametrize("kind", PATHS)
def test_streams_whose_agent_leaves_are_charged_to_their_end(opened, bill, kind):
    agent = opened(llm_tokens=200_000)
    body = body_of(kind, {"write": 90_000, "pause": 0.05}, stream=True, max_tokens=100_000)
    if kind == "responses":
        body["max_output_tokens"] = body.pop("max_tokens")
    together(agent, 20, kind, body, hang_up=400)
    use = agent.close()
    assert 90_000 <= bill.tokens <= 200_000
    assert use.prompt_tokens + use.completion_tokens >= bill.tokens


@pytest.mark.parametrize("plan", [{"usage": "omit"}, {"usage": "zero"}, {"end": "cut"}, {"end": "drop"}, {"end": 500}])
@pytest.mark.parametrize("stream", [False, True])
def test_answers_without_a_count_that_can_be_true_are_charged_what_was_reserved(opened, bill, plan, stream):
    agent = opened(llm_tokens=100_000)
    for _ in range(12):
        send(agent, "chat", body_of("chat", plan, max_tokens=20_000, stream=stream))
    agent.close()
    assert 80_000 <= bill.tokens <= 100_000


@pytest.mark.parametrize("status", TURNED_AWAY)
def test_calls_that_the_provider_turned_away_cost_nothing(opened, bill, status):
    agent = opened(llm_tokens=100_000)
    for _ in range(12):
        send(agent, "chat", body_of("chat", {"end": status}, max_tokens=20_000))
    use = agent.close()
    assert (use.calls, use.failed, use.prompt_tokens, use.completion_tokens) == (12, 12, 0, 0)


def test_a_budget_for_reasoning_is_part_of_what_is_reserved(opened, bill):
    agent = opened(llm_tokens=50_000)
    body = body_of("messages", max_tokens=20_000, thinking={"type": "enabled", "budget_tokens": 16_000})
    assert [send(agent, "messages", body) for _ in range(4)] == [200, 200, 403, 403]
    agent.close()
    assert 45_000 <= bill.tokens <= 50_000
    last = bill.bodies[-1]
    assert 1024 <= last["thinking"]["budget_tokens"] < last["max_tokens"] < 20_000


def test_images_are_reserved_though_they_have_few_bytes(opened, bill):
    agent = opened(llm_tokens=60_000)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    body = {"model": "big", "max_tokens": 10, "messages": [{"role": "user", "content": [image] * 2}]}
    assert send(agent, "chat", body) == 403


def test_a_response_that_continues_another_reserves_what_the_provider_adds(opened, bill):
    agent = opened(llm_tokens=30_000)
    assert send(agent, "responses", body_of("responses", {"write": 20_000}, max_output_tokens=20_000)) == 200
    body = body_of("responses", previous_response_id="r", max_output_tokens=1000)
    assert send(agent, "responses", {**body, "previous_response_id": "another's"}) == 400
    assert send(agent, "responses", body) == 403, "20,000 tokens would be read again"


@pytest.mark.parametrize("limits", [{"llm_tokens": 200_000}, {"llm_cost_usd": 5.0}])
@pytest.mark.parametrize("kind", ["chat", "messages"])
def test_a_sequential_agent_can_use_its_budget(opened, bill, limits, kind):
    """A conversation that grows, as agents have them: prompts of a quarter of a token per character, short answers."""
    agent = opened(**limits)
    messages: list[dict[str, Any]] = []
    for turn in range(400):
        messages.append({"role": "user", "content": json.dumps({"write": 600, "turn": turn, "text": "x" * 1500})})
        body = {"model": "big", "messages": messages, **({"max_tokens": 32_000} if kind == "messages" else {})}
        if send(agent, kind, body) != 200:
            break
        messages.append({"role": "assistant", "content": "word " * 120})
    agent.close()
    share = bill.cost / limits["llm_cost_usd"] if "llm_cost_usd" in limits else bill.tokens / limits["llm_tokens"]
    assert 0.9 <= share <= 1


PLANS = st.fixed_dictionaries(
    {"usage": st.sampled_from(["true", "true", "omit", "zero", "text", "float"])},
    optional={
        "write": st.integers(0, 30_000),
        "end": st.sampled_from(["whole", "cut", "drop", 400, 500, 502]),
        "pause": st.just(0.01),
    },
)
MAXIMA = st.one_of(st.none(), st.integers(1, 200_000), st.sampled_from([10**9, 4000.0]))
CALLS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(list(PATHS)),
        "plan": PLANS,
        "most": MAXIMA,
        "n": st.sampled_from([None, 1, 3, 100.0]),
        "stream": st.booleans(),
        "thinking": st.booleans(),
        "hang_up": st.none() | st.integers(0, 900),
        "model": st.sampled_from(["big", "plain"]),
        "at_once": st.integers(1, 5),
        "continues": st.booleans(),
    }
)
LIMITS = st.one_of(
    st.fixed_dictionaries({"llm_tokens": st.integers(500, 300_000)}),
    st.fixed_dictionaries({"llm_cost_usd": st.floats(0.01, 5)}),
    st.fixed_dictionaries({"llm_tokens": st.integers(500, 300_000), "llm_cost_usd": st.floats(0.01, 5)}),
)


def made(call: dict[str, Any], conversation: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the request of a call, which may continue the conversation so far."""
    kind, most = call["kind"], call["most"]
    more: dict[str, Any] = {"stream": True} if call["stream"] else {}
    if most is not None or kind == "messages":
        more["max_output_tokens" if kind == "responses" else "max_tokens"] = most
    if kind == "chat":
        more["n"] = call["n"]
    if kind == "messages" and call["thinking"]:
        more["thinking"] = {"type": "enabled", "budget_tokens": 1024}
    body = body_of(kind, call["plan"], call["model"], **more)
    if not call["continues"]:
        conversation.clear()
    conversation.append({"role": "user", "content": json.dumps(call["plan"])})
    body["input" if kind == "responses" else "messages"] = list(conversation)
    conversation.append({"role": "assistant", "content": "word " * 300})
    return body


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=st.lists(CALLS, min_size=1, max_size=6), limits=LIMITS, density=st.sampled_from([0.1, 0.25, 1.0]))
def test_no_program_of_calls_is_billed_more_than_its_budget(program, limits, density, opened, bill):
    bill.tokens, bill.cost, bill.density = 0, 0.0, density
    agent = opened(**limits)
    note(f"{program} {limits} {density}")
    conversation: list[dict[str, Any]] = []
    for call in program:
        together(agent, call["at_once"], call["kind"], made(call, conversation), call["hang_up"])
    agent.close()
    assert bill.tokens <= limits.get("llm_tokens", bill.tokens)
    assert bill.cost <= limits.get("llm_cost_usd", bill.cost)


SERVE = """
import sys, time
from pathlib import Path
from mleredux.models import Agent
from mleredux._core.store import Run
from mleredux_gateway.endpoint import open_gateway
agent = Agent(id="talker", version="3", title="Talks", command=("true",))
gateway = open_gateway(Run(Path(sys.argv[1])), agent, Path(sys.argv[2]))
print(gateway.url, gateway.secrets[0], flush=True)
time.sleep(600)
"""


def test_calls_in_progress_at_a_kill_are_charged_what_was_reserved(opened, bill, tmp_path):
    agent = opened(llm_tokens=200_000)
    agent.close()
    socket_path = f"/tmp/mleredux-attack-{os.getpid()}.sock"
    program = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(agent.run.path), socket_path], stdout=subprocess.PIPE, text=True
    )
    try:
        assert program.stdout is not None
        url, token = program.stdout.readline().split()
        body = body_of("chat", {"pause": 30}, max_tokens=100_000, stream=True)
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, headers=headers, timeout=60) as answer:
            next(answer.iter_bytes())
            program.send_signal(signal.SIGKILL)
            program.wait()
    finally:
        program.kill()
        program.wait()
        program.stdout.close()
        Path(socket_path).unlink(missing_ok=True)
    again = opened(run=agent.run)
    assert send(again, "chat", body_of("chat")) == 200, "what is left can be used"
    again.close()
    assert 190_000 <= bill.tokens <= 200_000
