"""Budgets by calls, tokens and cost: the agent's error, the run's events, and the maximum overrun."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import anthropic
import httpx
import openai
import pytest

HELLO = {"role": "user", "content": "hello"}


@pytest.mark.parametrize(
    ("limits", "answered"),
    [({"llm_calls": 3}, 3), ({"llm_tokens": 300}, 3), ({"llm_cost_usd": 0.008}, 3), ({"llm_calls": 0}, 0)],
)
def test_an_exhausted_budget_is_a_clear_error(opened, limits, answered):
    """One call uses 120 tokens, and 0.003 USD."""
    agent = opened(**limits)
    ((name, limit),) = limits.items()
    for _ in range(answered):
        agent.say()
    with pytest.raises(openai.PermissionDeniedError) as told:
        agent.say()
    assert told.value.type == "budget_exhausted" and told.value.code == name
    assert f"{name} of {limit:g} is used up" in str(told.value)
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


@pytest.mark.parametrize("limits", [{"llm_calls": 4}, {"llm_tokens": 200}, {"llm_cost_usd": 0.005}])
def test_concurrent_calls_do_not_overrun_it(opened, limits):
    """Twenty concurrent calls of 50 tokens and 0.0014 USD each."""
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
    assert answered == use.calls == 4
    assert use.prompt_tokens + use.completion_tokens == 200
    assert use.refused == 16


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
