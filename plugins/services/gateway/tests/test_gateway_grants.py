"""Refusals of fields and models in the protocol and the ledger, and grants to one configuration or run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from billing_provider import billing  # type: ignore[import-not-found]
from mleredux_support.imports import lazily

anthropic = lazily("anthropic")
openai = lazily("openai")


def chat(content: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": content}], **more}


@pytest.mark.attack
def test_a_refusal_is_an_error_of_the_protocol_and_in_the_ledger_but_never_forwarded(opened, upstream):
    agent, before = opened(), len(upstream.calls)
    link = "https://example.org/secret"
    with pytest.raises(openai.BadRequestError, match=r"does not allow `tools.web_search`: omit it, or grant it"):
        agent.ai.responses.create(model="priced", input="x", tools=[{"type": "web_search"}])
    for _ in range(2):
        with pytest.raises(openai.BadRequestError, match=r"`messages.content.image_url.url` must be an image"):
            agent.ai.chat.completions.create(
                **{**chat([{"type": "image_url", "image_url": {"url": link}}]), "model": "priced"}
            )
    with pytest.raises(anthropic.BadRequestError, match=r"does not allow `container`"):
        agent.claude.messages.create(model="priced", max_tokens=9, messages=[], extra_body={"container": link})
    use = agent.close()
    noted = {"tools.web_search": 1, "messages.content.image_url.url": 2, "container": 1}
    assert (use.calls, use.refused, use.refused_fields) == (0, 4, noted)
    assert [call["fields"] for call in agent.calls()][::3] == [["tools.web_search"], ["container"]]
    assert "example.org" not in (agent.run.path / "llm" / "calls.jsonl").read_text()
    assert len(upstream.calls) == before
    again = opened(run=agent.run)
    assert again.close() == use


@pytest.mark.attack
def test_betas_that_are_not_listed_are_dropped_and_noted(opened, tmp_path):
    with billing() as (url, bill):
        (tmp_path / "gateway.toml").write_text(f'[upstreams.claude]\nprotocol = "anthropic"\nbase_url = "{url}"\n')
        agent = opened()
        headers = {
            "x-api-key": agent.token,
            "x-other": "1",
            "anthropic-beta": "claude-code-20250219, mcp-client-2025-04,interleaved-thinking-2025-05-14,web-fetch-2025",
        }
        url = f"{agent.gateway.url}/v1/messages?beta=true"
        assert httpx.post(url, headers=headers, json=chat("{}", max_tokens=9)).status_code == 200
    assert bill.headers["anthropic-beta"] == "claude-code-20250219,interleaved-thinking-2025-05-14"
    assert "x-other" not in bill.headers
    dropped = ["headers.anthropic-beta.mcp-client-2025-04", "headers.anthropic-beta.web-fetch-2025"]
    assert agent.close().refused_fields == dict.fromkeys(dropped, 1)


def test_fields_are_granted_by_the_configuration(opened, upstream, tmp_path):
    path = tmp_path / "gateway.toml"
    path.write_text(path.read_text().replace("timeout = 60", 'timeout = 60\nallow = ["metadata", "tools.web_*"]'))
    agent = opened()
    agent.say(metadata={"a": "b"}, tools=[{"type": "web_search"}])
    assert upstream.calls[-1].body["metadata"] == {"a": "b"}
    with pytest.raises(openai.BadRequestError, match=r"does not allow `tools.mcp`"):
        agent.say(tools=[{"type": "mcp"}])


def test_fields_are_granted_to_one_run_alone(opened, upstream):
    granted, other = opened(grants={"llm_fields": ["tools.web_*", "metadata"]}), opened()
    granted.say(metadata={"a": "b"}, tools=[{"type": "web_search"}])
    assert upstream.calls[-1].body["tools"] == [{"type": "web_search"}]
    for agent, tool in ((granted, "mcp"), (other, "web_search")):
        with pytest.raises(openai.BadRequestError, match=f"does not allow `tools.{tool}`.*--allow-llm-field"):
            agent.say(tools=[{"type": tool}])
    assert granted.close().refused_fields == {"tools.mcp": 1}


def test_models_are_granted_to_one_run_alone(opened, upstream):
    granted, other = opened(grants={"llm_models": ["secret-*", "sonar*", "web-search-2"]}), opened()
    assert granted.say(model="secret-model") and granted.say(model="web-search-2"), "named exactly"
    assert [call.body["model"] for call in upstream.calls[-2:]] == ["secret-model", "web-search-2"]
    before = len(upstream.calls)
    for agent, model in ((other, "secret-model"), (granted, "sonar-pro"), (granted, "secret-search-model")):
        with pytest.raises(openai.NotFoundError, match=f"does not offer the model '{model}'.*--allow-llm-model"):
            agent.say(model=model)
    assert len(upstream.calls) == before and other.close().refused == 1
