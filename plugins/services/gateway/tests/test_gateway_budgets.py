"""Budgets by calls, tokens and cost: the agent's error, the run's events, and what is told to the provider."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from mleredux_gateway.meter import GAP, Outages
from mleredux_support.imports import lazily

anthropic = lazily("anthropic")
openai = lazily("openai")

HELLO = {"role": "user", "content": "hello"}


@pytest.mark.parametrize(
    ("limits", "answered"),
    [({"llm_calls": 3}, 3), ({"llm_tokens": 690}, 3), ({"llm_cost_usd": 0.013}, 3), ({"llm_calls": 0}, 0)],
)
def test_an_exhausted_budget_is_a_clear_error(opened, limits, answered):
    """One call uses 120 tokens, and 0.003 USD; up to 380 and 0.0063 are reserved for it."""
    agent = opened(**limits)
    ((name, limit),) = limits.items()
    for _ in range(answered):
        agent.say(max_tokens=30)
    with pytest.raises(openai.PermissionDeniedError) as told:
        agent.say("other words", max_tokens=30)
    assert told.value.type == "budget_exhausted" and told.value.code == name
    amount = {"llm_calls": f"{limit} calls", "llm_tokens": f"{limit} tokens", "llm_cost_usd": f"${limit}"}[name]
    assert f"The run's budget of {amount} for language models ({name}) " in str(told.value)
    with pytest.raises(anthropic.PermissionDeniedError) as told_by_the_other:
        agent.claude.messages.create(model="priced", max_tokens=9, messages=[HELLO])
    assert told_by_the_other.value.body["error"]["type"] == "budget_exhausted"
    use = agent.close()
    assert (use.calls, use.refused, use.exhausted) == (answered, 2, name)
    events = [event.data for event in agent.run.events() if event.type == "gateway"]
    assert events == [{"status": "exhausted", "budget": name, "limit": limit}]


def test_an_agent_can_ask_what_is_left(opened):
    agent = opened(llm_tokens=500)
    agent.say()
    left = httpx.get(f"{agent.gateway.url}/budget", headers={"X-Api-Key": agent.token}).json()
    assert left["llm_tokens"] == {"used": 120, "limit": 500}
    assert left["llm_cost_usd"] == {"used": 0.003, "limit": None}


def test_a_model_without_a_price_has_no_cost_and_is_refused_if_cost_is_limited(opened):
    free = opened()
    free.say(model="unpriced")
    assert free.close().cost_usd is None
    limited = opened(llm_cost_usd=1)
    with pytest.raises(openai.BadRequestError, match="no price"):
        limited.say(model="unpriced")
    use = limited.close()
    assert (use.calls, use.refused, use.exhausted) == (0, 1, None)


@pytest.mark.parametrize("limits", [{"llm_calls": 9}, {"llm_tokens": 800}, {"llm_cost_usd": 0.018}])
@pytest.mark.attack
def test_concurrent_calls_do_not_overrun_it(opened, limits):
    """Twenty concurrent calls of 50 tokens and 0.0014 USD each, for which up to 380 and 0.0065 are reserved."""
    agent = opened(**limits)

    def ask(_: int) -> bool:
        try:
            agent.say("slow", max_tokens=30)
        except openai.PermissionDeniedError:
            return False
        return True

    with ThreadPoolExecutor(20) as pool:
        answered = sum(pool.map(ask, range(20)))
    use = agent.close()
    assert answered == use.calls and 9 <= answered <= 16, "they wait for one another rather than being refused"
    assert use.prompt_tokens + use.completion_tokens == 50 * answered
    assert use.refused == 20 - answered


def test_a_resumed_run_has_the_remaining_budget(opened):
    first = opened(llm_calls=3)
    first.say()
    first.say()
    earlier = first.close()
    second = opened(run=first.run)
    assert second.token == first.token and second.gateway.url == first.gateway.url
    second.say()
    with pytest.raises(openai.PermissionDeniedError):
        second.say()
    use = second.close()
    assert (use.calls, use.cost_usd, use.exhausted) == (3, pytest.approx(earlier.cost_usd * 1.5), "llm_calls")
    third = opened(run=first.run)
    assert third.close() == use


def test_what_a_run_cost_states_by_which_prices(opened):
    agent = opened()
    agent.say()
    agent.say(model="gpt-4o")
    use = agent.close()
    own, shipped = use.price_tables
    assert own.startswith("gateway.toml (sha256 ") and shipped.startswith("prices.json of 20")
    assert [call["price_table"] for call in agent.calls()] == [own, shipped]


@pytest.mark.parametrize(
    ("model", "field"),
    [("priced", "max_tokens"), ("gpt-4o", "max_tokens"), ("gpt-5.5", "max_completion_tokens")],
)
def test_the_maximum_is_told_in_the_field_that_the_model_observes(opened, upstream, model, field):
    agent = opened(llm_tokens=10_000)
    for named in ({}, {"max_tokens": 50_000}, {"max_completion_tokens": 50_000}):
        agent.say(model=model, **named)
        body = upstream.calls[-1].body
        assert body[field] < 10_000
        assert len({"max_tokens", "max_completion_tokens"} & set(body)) == 1
    agent.close()
    assert all(call["max_output"] < 10_000 for call in agent.calls())


def test_without_a_budget_requests_are_forwarded_unchanged(opened, upstream):
    agent = opened(llm_calls=5)
    agent.say(temperature=0.5)
    assert upstream.calls[-1].body == {"model": "priced", "messages": [HELLO], "temperature": 0.5}


def test_no_agent_prolongs_its_run_without_limit():
    outages = Outages(most=300)
    outages.note(0, 1, down=True)
    outages.note(2, 3, down=True)
    assert outages.seconds(3) == 3 and outages.seconds(5) == 5
    assert outages.seconds(3000) == 3 + GAP, "other work after a failed call is no pause"
    outages.note(3000, 3001, down=False)
    assert outages.seconds(9999) == 3 + GAP, "a successful call ends the pause"
    outages.note(9999, 99_999, down=True)
    assert outages.seconds(10**6) == 300


def test_calls_at_the_same_time_pause_the_clock_once():
    outages = Outages(most=300)
    for began, ended in ((0, 10), (1, 10), (2, 11)):
        outages.note(began, ended, down=True)
    assert outages.seconds(11) == 11
