"""Upstreams and prices: their sources, and the reporting of mistakes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux.errors import SandboxError
from mleredux.models import Grants, Limits, RunPlan
from mleredux_gateway.config import Price, doctor, load_config
from mleredux_gateway.prices import Prices, cost_of, highest
from mleredux_llm_protocols import Tokens, tokens_of


def config(tmp_path: Path, text: str, **environment: str):
    (tmp_path / "gateway.toml").write_text(text)
    return load_config({"MLEREDUX_GATEWAY_CONFIG": str(tmp_path / "gateway.toml"), **environment})


def test_without_a_file_keys_of_the_environment_define_the_upstreams(tmp_path):
    nothing = {"XDG_CONFIG_HOME": str(tmp_path)}
    with pytest.raises(SandboxError, match=r"No language model is configured.*OPENAI_API_KEY"):
        load_config(nothing)
    found = load_config({**nothing, "OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-2"})
    assert [upstream.name for upstream in found.upstreams] == ["openai", "anthropic"]
    openai, anthropic = found.upstreams
    assert openai.url("/chat/completions") == "https://api.openai.com/v1/chat/completions"
    assert anthropic.url("/messages") == "https://api.anthropic.com/v1/messages"
    assert openai.headers("r") == {"Authorization": "Bearer sk-1"}
    assert anthropic.headers("r") == {"X-Api-Key": "sk-2"}
    moved = load_config({**nothing, "OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"})
    assert [upstream.host for upstream in moved.upstreams] == ["127.0.0.1:8000"]


def test_the_first_upstream_that_offers_a_model_gets_the_call(tmp_path):
    text = """
    [upstreams.small]
    protocol = "openai"
    base_url = "http://127.0.0.1:1/v1"
    models = ["small-*"]
    rename = { tiny = "small-1" }
    [upstreams.rest]
    protocol = "openai"
    base_url = "http://user:pass@127.0.0.1:2/v1"
    """
    found = config(tmp_path, text)
    assert [found.find("openai", name).name for name in ("small-2", "tiny", "else")] == ["small", "small", "rest"]
    assert found.find("anthropic", "small-2") is None
    assert found.upstreams[1].host == "127.0.0.1:2", "without the password"


@pytest.mark.parametrize(
    "model",
    ["gpt-4o:online", "vendor/sonar-pro", "SONAR", "gpt-4o-search-preview", "o3-deep-research", "openrouter/auto"],
)
def test_models_that_search_by_themselves_are_offered_only_by_name(tmp_path, model):
    text = '[upstreams.a]\nprotocol = "openai"\nbase_url = "http://127.0.0.1:1/v1"\nmodels = ["*", NAMED]'
    assert config(tmp_path, text.replace("NAMED", '"gpt-*"')).find("openai", model) is None
    assert config(tmp_path, text.replace("NAMED", f'"{model}"')).find("openai", model) is not None


def test_a_key_is_in_no_string_representation_of_an_upstream(tmp_path):
    text = '[upstreams.a]\nprotocol = "openai"\nbase_url = "http://x/v1"\nkey_env = "KEY"'
    found = config(tmp_path, text, KEY="sk-planted")
    assert "sk-planted" not in repr(found) and "sk-planted" not in str(found.upstreams)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("upstreams = 3", "upstreams"),
        ('[upstreams.a]\nprotocol = "smoke"\nbase_url = "x"', r"upstreams\.a\.protocol"),
        ('[upstreams.a]\nprotocol = "openai"\nbase_url = "x"\nkey = "sk-secret"', r"upstreams\.a\.key: Extra"),
        ('[upstreams.a]\nprotocol = "openai"\nbase_url = "x"\nkey_env = "ABSENT"', "ABSENT, which is not set"),
        ("[upstreams]", "defines no upstream"),
        ("not toml", "can't be read"),
    ],
)
def test_mistakes_are_reported_without_possible_keys(text, told, tmp_path):
    with pytest.raises(SandboxError, match=told) as error:
        config(tmp_path, text)
    assert "sk-secret" not in str(error.value)


def test_a_given_file_must_exist(tmp_path):
    with pytest.raises(SandboxError, match="can't be read"):
        load_config({"MLEREDUX_GATEWAY_CONFIG": str(tmp_path / "absent.toml"), "OPENAI_API_KEY": "x"})


def test_prices_come_from_the_user_then_the_table_then_the_package(tmp_path):
    table = {
        "gpt-4o": {"mode": "chat", "input_cost_per_token": 5e-6, "output_cost_per_token": 6e-6},
        "somebody/gpt-4o": {"mode": "chat", "input_cost_per_token": 9e-6, "output_cost_per_token": 9e-6},
        "lab/new": {"mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6},
        "pictures": {"mode": "image_generation", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6},
    }
    (tmp_path / "table.json").write_text(json.dumps(table))
    prices = Prices({"mine": Price(input=1, output=2)}, tmp_path / "table.json")
    assert prices.of("mine").price == Price(input=1, output=2)
    assert prices.of("gpt-4o").price.input == 5
    assert prices.of("openai/gpt-4o").price.input == 5
    assert prices.of("new").price.output == 2
    assert prices.of("pictures") is None
    assert prices.of("unknown", "mine").price == Price(input=1, output=2)
    shipped = prices.of("claude-opus-4-5")
    assert shipped.price.output > shipped.price.input > 0 and shipped.price.max_output == 64_000
    assert [prices.of(name).table.partition(" ")[0] for name in ("mine", "gpt-4o")] == ["gateway.toml", "table.json"]
    assert re.fullmatch(r"prices\.json of \d{4}-\d\d-\d\d \(sha256 [0-9a-f]{16}\)", shipped.table)
    with pytest.raises(SandboxError, match=r"absent\.json"):
        Prices({}, tmp_path / "absent.json")


def test_cost_includes_caches_and_long_prompts():
    plain = Price(input=10, output=100)
    assert cost_of(Tokens(1000, 400, 100, 10), plain) == pytest.approx(0.011)
    price = Price(input=10, output=100, cached=1, cache_write=20, above=5000, above_input=30, above_output=200)
    assert cost_of(Tokens(1000, 400, 100, 10), price) == pytest.approx((500 * 10 + 400 * 1 + 100 * 20 + 1000) / 1e6)
    assert cost_of(Tokens(6000, 0, 0, 10), price) == pytest.approx((6000 * 30 + 10 * 200) / 1e6)


def test_an_hour_in_the_cache_costs_twice_the_input():
    price = Price(input=10, output=100, cached=1, cache_write=12.5)
    assert cost_of(Tokens(1000, 0, 1000, 0, cache_written_hour=400), price) == pytest.approx(
        (600 * 12.5 + 400 * 20) / 1e6
    )


@given(
    prompt=st.integers(0, 10**6),
    parts=st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)),
    completion=st.integers(0, 10**6),
    rates=st.tuples(*[st.floats(0, 1000)] * 4, *[st.none() | st.floats(0, 1000)] * 4),
    above=st.none() | st.integers(0, 10**6),
    more=st.integers(0, 10**6),
)
def test_what_is_reserved_is_the_highest_cost(prompt, parts, completion, rates, above, more):
    names = ("input", "output", "cached", "cache_write", *(f"above_{n}" for n in ("input", "output", "cached")))
    price = Price(**dict(zip((*names, "above_cache_write"), rates, strict=True)), above=above)
    cached = int(prompt * parts[0])
    written = int((prompt - cached) * parts[1])
    hour = int(written * parts[2])
    tokens = Tokens(prompt, cached, written, completion, cache_written_hour=hour)
    read, wrote = highest(price, prompt + more, hour=hour > 0)
    assert cost_of(tokens, price) <= ((prompt + more) * read + completion * wrote) * (1 + 1e-9)


def test_usage_is_read_for_each_protocol_and_invalid_reports_are_ignored():
    details = {"cached_tokens": 30}
    chat = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": details}
    assert tokens_of("chat", chat) == Tokens(100, 30, 0, 5)
    assert tokens_of("chat", {"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_hit_tokens": 7}).cached == 7
    responses = {"input_tokens": 100, "output_tokens": 5, "input_tokens_details": details}
    assert tokens_of("responses", responses) == Tokens(100, 30, 0, 5)
    messages = {"input_tokens": 60, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 10}
    assert tokens_of("messages", {**messages, "output_tokens": 5}) == Tokens(100, 30, 10, 5)
    assert tokens_of("chat", {**chat, "total_tokens": 300}) == Tokens(100, 30, 0, 200), "reasoning in the total only"
    for nonsense in (None, [], {}, {"prompt_tokens": "many"}, {"prompt_tokens": -1}, {"prompt_tokens": True}):
        assert tokens_of("chat", nonsense) is None
        assert tokens_of("chat", {**chat, **nonsense} if nonsense else nonsense) is None


def test_an_installed_litellm_does_not_change_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "litellm" / "model_prices_and_context_window_backup.json"
    table.parent.mkdir()
    table.with_name("__init__.py").touch()
    costs = '"input_cost_per_token": 1, "output_cost_per_token": 1'
    table.write_text(f'{{"only-there": {{"litellm_provider": "openai", "mode": "chat", {costs}}}}}')
    monkeypatch.syspath_prepend(tmp_path)
    assert Prices().of("only-there") is None
    assert Prices(table=table).of("only-there") is not None


KEYLESS = '[upstreams.local]\nprotocol = "openai"\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["llama*"]\n'


@pytest.mark.parametrize(
    ("text", "options", "granted", "refused"),
    [
        (None, {}, (), "No language model is configured"),
        (KEYLESS, {}, (), None),
        (KEYLESS, {"model": "llama3"}, (), None),
        (KEYLESS, {"model": "openai/llama3"}, (), None),
        (KEYLESS, {"model": ""}, (), None),
        (KEYLESS, {"model": "gpt-9"}, (), "offers the model gpt-9"),
        (KEYLESS, {"model": "gpt-9"}, ("gpt-9",), None),
        (KEYLESS, {"code_model": "llama3", "feedback_model": "gpt-9"}, (), "offers the model gpt-9"),
        (KEYLESS.replace("base_url", "#"), {}, (), "base_url"),
        (KEYLESS + 'key_env = "LOCAL_KEY"\n', {}, (), "LOCAL_KEY, which is not set"),
        ("[upstreams", {}, (), "can't be read"),
    ],
)
def test_what_a_run_lacks_is_known_before_anything_is_built(tmp_path, monkeypatch, text, options, granted, refused):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MLEREDUX_GATEWAY_CONFIG", "LOCAL_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    if text is not None:
        (tmp_path / "gateway.toml").write_text(text)
        monkeypatch.setenv("MLEREDUX_GATEWAY_CONFIG", str(tmp_path / "gateway.toml"))
    more = {"options": options, "grants": Grants(llm_models=granted), "limits": Limits(time_limit=60)}
    plan = RunPlan(task="toy", agent="asker", sandbox="process", seed=0, network="gateway", **more)
    [finding] = doctor.callback(plan)
    assert finding.ok == (refused is None) and (refused or "") in finding.message, finding
