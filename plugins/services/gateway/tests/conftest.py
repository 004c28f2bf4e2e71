"""Gateways of runs in front of a scripted upstream, all over real sockets."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.store import Run
from mleredux.models import Agent, Grants, Limits, LlmUse, RunSpec
from mleredux_gateway import read_calls
from mleredux_gateway.endpoint import RunGateway, open_gateway
from mleredux_scripted_llm import ScriptedLlm
from mleredux_support.imports import lazily

anthropic = lazily("anthropic")
openai = lazily("openai")

UPSTREAM_KEY = "sk-planted-5f1d0c77e2"
CONFIG = """
[upstreams.scripted]
protocol = "openai"
base_url = "{url}/v1"
key_env = "PLANTED_KEY"
models = ["priced", "unpriced", "gpt-*"]
rename = {{ alias = "priced" }}
headers = {{ X-Conversation = "{{run}}" }}
timeout = 60

[upstreams.claude]
protocol = "anthropic"
base_url = "{url}"
key_env = "PLANTED_KEY"
models = ["priced", "claude-*"]
headers = {{ X-Conversation = "{{run}}" }}

[upstreams.gemini]
protocol = "google"
base_url = "{url}"
key_env = "PLANTED_KEY"
models = ["priced"]
headers = {{ X-Conversation = "{{run}}" }}

[prices.priced]
input = 10.0
cached = 1.0
output = 100.0
"""
TALK: dict[str, Any] = {
    "models": ["priced", "unpriced", "secret-model"],
    "rules": [
        {
            "name": "weigh",
            "when": {"tools": "weigh", "last": "weigh"},
            "reply": {
                "text": "I weigh.",
                "tools": [{"name": "weigh", "arguments": {"kilos": 2}}],
                "usage": {"prompt": 1000, "completion": 10, "cached": 400},
            },
        },
        {"when": {"last": "leak"}, "reply": {"error": {"status": 401, "message": f"Wrong key {UPSTREAM_KEY}."}}},
        {"when": {"last": "echo"}, "reply": {"text": f"The key is {UPSTREAM_KEY}, I think."}},
        {
            "when": {"last": "slow"},
            "reply": {"text": "At last.", "latency": 0.4, "usage": {"prompt": 40, "completion": 10}},
        },
        {"when": {"last": "torn"}, "reply": {"text": "one two three four " * 9, "malformed": "truncated"}},
        {"when": {"last": "overloaded"}, "reply": {"error": {"status": 529, "message": "Overloaded."}}},
        {"when": {"last": "html"}, "reply": {"malformed": "html"}},
        {
            "when": {"last": "dripping"},
            "reply": {"text": "drip " * 30, "chunk": 5, "chunk_seconds": 0.05, "usage": {"prompt": 5, "completion": 5}},
        },
        {"name": "hello", "reply": {"text": "Hello. " * 10, "usage": {"prompt": 100, "completion": 20}}},
    ],
}


@pytest.fixture(scope="session")
def planted_key() -> str:
    """The upstream's key: no stored file of a run may contain it."""
    return UPSTREAM_KEY


@pytest.fixture(scope="session")
def config_text() -> str:
    """`gateway.toml`, with `{url}` as the upstream's address."""
    return CONFIG


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedLlm]:
    with ScriptedLlm(TALK, key=UPSTREAM_KEY) as running:
        yield running


@dataclass
class Opened:
    """A run with its gateway, as an agent and as a reader of the run see it."""

    run: Run
    gateway: RunGateway
    environment: dict[str, str]

    @cached_property
    def ai(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=self.environment["OPENAI_BASE_URL"], api_key=self.token)

    @cached_property
    def claude(self) -> anthropic.Anthropic:
        return anthropic.Anthropic(base_url=self.environment["ANTHROPIC_BASE_URL"], api_key=self.token)

    @property
    def token(self) -> str:
        return self.environment["OPENAI_API_KEY"]

    def close(self) -> LlmUse:
        return self.gateway.close()

    def calls(self) -> list[dict[str, Any]]:
        """Return the record, once the calls are over."""
        return list(read_calls(self.run.path / "llm" / "calls.jsonl"))

    def say(self, text: str = "hello", model: str = "priced", **more: Any) -> str:
        answer = self.ai.chat.completions.create(model=model, messages=[{"role": "user", "content": text}], **more)
        return answer.choices[0].message.content or ""


AGENT = Agent(id="talker", version="3", title="Talks", command=("true",))
Opener = Callable[..., Opened]


@pytest.fixture
def configured(upstream: ScriptedLlm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration with the upstream, whose key is only in the caller's environment."""
    (tmp_path / "gateway.toml").write_text(CONFIG.format(url=upstream.url))
    monkeypatch.setenv("MLEREDUX_GATEWAY_CONFIG", str(tmp_path / "gateway.toml"))
    monkeypatch.setenv("PLANTED_KEY", UPSTREAM_KEY)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def make_run(path: Path, grants: dict[str, Any] | None = None, replay: str | None = None, **limits: Any) -> Run:
    """A run on disk that has not started."""
    spec = RunSpec(
        id=path.name,
        task="digits",
        agent=AGENT.id,
        sandbox="process",
        seed=0,
        limits=Limits(**limits),
        network="gateway",
        grants=Grants.model_validate(grants or {}),
        replay=replay,
        data_dir=str(path),
        created_at=datetime.now(UTC),
    )
    return Run.create(path, spec)


@pytest.fixture
def opened(configured: None, tmp_path: Path) -> Iterator[Opener]:
    """`opened(llm_calls=3)` opens the gateway of a new run; `opened(run=run)` that of a resumed run."""
    numbers, all_of_them = itertools.count(), []
    with tempfile.TemporaryDirectory(prefix="gateway-") as sockets:

        def make(run: Run | None = None, **limits: Any) -> Opened:
            number = next(numbers)
            run = run or make_run(tmp_path / "runs" / f"run-{number}", **limits)
            gateway = open_gateway(run, AGENT, Path(sockets) / f"{number}.sock")
            all_of_them.append(gateway)
            return Opened(run, gateway, gateway.environment(gateway.url))

        yield make
        for gateway in all_of_them:
            gateway.close()
