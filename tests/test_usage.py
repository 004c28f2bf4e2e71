"""One usage of each run: every place shows the calls, tokens and cost that the gateway counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.store import Run
from mleredux_scripted_llm import ScriptedLlm
from mleredux_support.commands import mleredux
from mleredux_support.usage import PLACES, assert_same_usage
from mleredux_testing.toys import TOY_PLUGIN

PLUGIN = """
from mleredux.hookspecs import hookimpl
from mleredux.models import Agent

@hookimpl
def mleredux_register_agents():
    for name, plan in {plans!r}.items():
        network = "none" if name.startswith("alone") else "gateway"
        yield Agent(id=name, title=name, command=("python", "-c", {script!r}, plan), network=network)
"""
SCRIPT = """
import json, os, pathlib, sys, urllib.error, urllib.request
plan, history, claimed = json.loads(sys.argv[1]), [], {"prompt_tokens": 7, "completion_tokens": 7, "cost_usd": 9.0}
for kind, model, text, stream in plan["calls"]:
    history.append({"role": "user", "content": text})
    places = {"chat": "/chat/completions", "responses": "/responses", "messages": "/v1/messages"}
    base = os.environ["ANTHROPIC_BASE_URL" if kind == "messages" else "OPENAI_BASE_URL"]
    body = {"model": model, "stream": stream, ("input" if kind == "responses" else "messages"): history}
    body |= {"max_tokens": 99} if kind == "messages" else {}
    key = os.environ["OPENAI_API_KEY"]
    headers = {"Authorization": "Bearer " + key, "X-Api-Key": key, "Content-Type": "application/json"}
    request = urllib.request.Request(base + places[kind], json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request) as answer:
            print(answer.status, len(answer.read()), flush=True)
    except urllib.error.HTTPError as error:
        print(error.code, flush=True)
if plan["claims"]:
    steps = [{"step_id": 1, "source": "user", "message": "Solve it."}]
    said = {"source": "agent", "message": "x", "metrics": claimed}
    steps += [{"step_id": number, **said} for number in range(2, 2 + plan["claims"])]
    final = {"total_prompt_tokens": 5, "total_completion_tokens": 5, "total_cost_usd": 9.0}
    folder = pathlib.Path(os.environ["MLEREDUX_OUTPUT_DIR"]) / "rollout"
    folder.mkdir(parents=True, exist_ok=True)
    document = {"schema_version": "ATIF-v1.8", "agent": {"name": "x", "version": "1"}, "steps": steps}
    (folder / "trajectory.json").write_text(json.dumps({**document, "final_metrics": final}))
data = pathlib.Path(os.environ["MLEREDUX_DATA_DIR"])
pathlib.Path(os.environ["MLEREDUX_SUBMISSION"]).write_text((data / "sample_submission.csv").read_text())
"""
CONFIG = """
[upstreams.chat]
protocol = "openai"
base_url = "{url}/v1"
key_env = "USAGE_KEY"
models = ["priced", "cheap", "unpriced"]

[upstreams.claude]
protocol = "anthropic"
base_url = "{url}"
key_env = "USAGE_KEY"
models = ["claude"]

[prices.priced]
input = 10.0
cached = 1.0
output = 100.0

[prices.cheap]
input = 0.1
output = 0.3

[prices.claude]
input = 3.0
cached = 0.3
output = 15.0
"""
TOOL = {"name": "weigh", "arguments": {"kilos": 2}}
REPLIES: dict[str, dict[str, Any]] = {
    "tools": {"text": "I weigh.", "tools": [TOOL], "usage": {"prompt": 1000, "completion": 31, "cached": 400}},
    "reasons": {"text": "Hm.", "usage": {"prompt": 500, "completion": 90, "cached": 3, "reasoning": 64}},
    "busy": {"error": {"status": 429, "message": "Too many requests."}},
    "broken": {"error": {"status": 500, "message": "Broken."}},
    "torn": {"text": "one two three four " * 9, "malformed": "truncated"},
    "counts": {"text": "Not reported by me."},
}
KINDS = ("chat", "responses", "messages")


def calls(*texts: str, model: str = "priced", kinds: tuple[str, ...] = KINDS) -> list[Any]:
    """Ask for each text by each protocol, in streams and without."""
    return [
        (kind, "claude" if kind == "messages" else model, text, stream)
        for text in texts
        for kind in kinds
        for stream in (False, True)
    ]


SITUATIONS: dict[str, list[Any]] = {
    "all-protocols": calls("tools", "reasons", "counts"),
    "retries": calls("busy", "broken", "torn", "tools", kinds=("chat",)),
    "failures-only": calls("busy", "broken", kinds=("chat", "messages")),
    "several-models": calls("tools", kinds=("chat",)) + calls("reasons", model="cheap", kinds=("chat",)),
    "without-price": calls("tools", model="unpriced", kinds=("chat",)) + calls("reasons", kinds=("chat",)),
    "refused": [*calls("tools", kinds=("chat",)), ("chat", "unknown", "tools", False)],
    "no-calls": [],
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders, with a gateway that forwards to a scripted model."""
    home = tmp_path_factory.mktemp("usage")
    rules = [{"name": name, "when": {"last": name}, "reply": reply} for name, reply in REPLIES.items()]
    plans = {
        f"{name}-{claims}": json.dumps({"calls": made, "claims": claims})
        for name, made in SITUATIONS.items()
        for claims in (0, 1, len(made))
    }
    plans |= {f"alone-{claims}": json.dumps({"calls": [], "claims": claims}) for claims in (0, 3)}
    (home / "plugin.py").write_text(PLUGIN.format(plans=plans, script=SCRIPT))
    with ScriptedLlm({"rules": rules}, key="k") as llm, pytest.MonkeyPatch.context() as patch:
        (home / "gateway.toml").write_text(CONFIG.format(url=llm.url))
        patch.setenv("MLEREDUX_GATEWAY_CONFIG", str(home / "gateway.toml"))
        patch.setenv("USAGE_KEY", "k")
        patch.setenv("XDG_CONFIG_HOME", str(home))
        yield home
    set_current(None)


def ran(home: Path, agent: str, *words: str) -> Run:
    """Run an agent on the toy task."""
    plugins = ("-p", TOY_PLUGIN, "-p", str(home / "plugin.py"))
    folders = ("--runs-dir", str(home / "runs"), "--data-dir", str(home / "data"))
    ran = mleredux(*plugins, "run", "toy", "--agent", agent, "--sandbox", "process", *words, *folders, "--json")
    assert ran.code == 0, ran
    return Run(Path(ran.json["path"]))


@pytest.mark.parametrize("claims", ["none", "fewer", "each"])
@pytest.mark.parametrize("name", SITUATIONS)
def test_every_place_shows_what_the_gateway_counted(home: Path, name: str, claims: str) -> None:
    agent = f"{name}-{({'none': 0, 'fewer': 1, 'each': len(SITUATIONS[name])})[claims]}"
    run = ran(home, agent)
    assert run.report and run.report.ledger and run.report.ledger.llm
    assert run.report.ledger.llm.calls == len([one for one in SITUATIONS[name] if one[1] != "unknown"])
    assert_same_usage(run)
    if claims == "each" and SITUATIONS[name]:
        assert_same_usage(ran(home, agent, "--replay", run.id), replay=run.id)


@pytest.mark.parametrize("claims", [0, 3])
def test_without_a_gateway_only_the_rollout_shows_what_the_agent_claims(home: Path, claims: int) -> None:
    run = ran(home, f"alone-{claims}")
    assert run.report and run.report.ledger and run.report.ledger.llm is None
    for place in ("runs", "compare", "analyse", "tracker"):
        assert set(PLACES[place](run).values()) == {None}, place
    steps = {"prompt_tokens": 7 * claims, "completion_tokens": 7 * claims, "cost_usd": 9.0 * claims or None}
    total = {"prompt_tokens": 5, "completion_tokens": 5, "cost_usd": 9.0} if claims else steps
    expected = {"steps": steps, "view": steps, "inspect": total, "otlp": steps | {"cost_usd": total["cost_usd"]}}
    for place, figures in expected.items():
        shown = PLACES[place](run)
        assert {name: shown[name] for name in figures} == figures, place
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert "LLM tokens" not in page and ("written by the agent" in page) == bool(claims)


def test_all_exports_with_usage_are_compared() -> None:
    assert {"atif", "inspect", "otlp"} <= PLACES.keys()
