"""What language models used in a run, as each place shows it: all places must show the same, the gateway's."""

from __future__ import annotations

import json
import re
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.store import Run
from mleredux_experiments.analysis.analysis import analyse
from mleredux_experiments.results.sources import read_run
from mleredux_experiments.results.table import Results
from mleredux_gateway import read_calls
from mleredux_server.runs.summary import facts_of
from mleredux_tracker_mlflow.facts import facts_of as tracked
from mleredux_view.stepfile import StepFile

from mleredux_support.commands import mleredux

FIGURES = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")
Shown = dict[str, Any]
"""Some of: `calls`, `failed`, `tokens`, `FIGURES`, `replay`."""


def _tokens(shown: Shown) -> Shown:
    return {**shown, "tokens": shown["prompt_tokens"] + shown["completion_tokens"]}


def _of_steps(steps: list[Shown]) -> Shown:
    used = [step.get("metrics") or {} for step in steps]
    costs = [one["cost_usd"] for one in used if one.get("cost_usd") is not None]
    return {name: sum(one.get(name) or 0 for one in used) for name in FIGURES[:3]} | {
        "cost_usd": sum(costs) if costs else None
    }


def _record(run: Run) -> Shown:
    calls = [call for call in read_calls(run.path / "llm" / "calls.jsonl") if not call.get("refused")]
    shown: Shown = {name: sum(call.get(name) or 0 for call in calls) for name in FIGURES}
    if any(call["cost_usd"] is None for call in calls):
        shown["cost_usd"] = None
    return _tokens({**shown, "calls": len(calls), "failed": sum(bool(call.get("failed")) for call in calls)})


def _rollout(document: Shown) -> Shown:
    total, extra = document["final_metrics"], document["final_metrics"]["extra"]
    figures = {name: total.get(f"total_{name}") for name in FIGURES}
    counts = {"calls": extra["llm_calls"], "failed": extra["failed_calls"], "replay": extra.get("replay")}
    return _tokens({**figures, **counts})


def _stored(run: Run) -> Shown:
    document: Shown = json.loads((run.path / "rollout.json").read_text())
    return document


def _steps(run: Run) -> Shown:
    return _of_steps(_stored(run)["steps"])


def _page(run: Run) -> Shown:
    text = re.sub(r"<[^>]*>", "\n", (run.path / "report.html").read_text(encoding="utf-8"))
    words = [line.strip() for line in text.splitlines() if line.strip()]
    calls, tokens, cost = (words[words.index(f"LLM {name}") + 1] for name in ("calls", "tokens", "cost"))
    counts = re.fullmatch(r"([\d,]+) prompt, ([\d,]+) completion", tokens)
    cached = re.search(r"([\d,]+) prompt tokens were cached", text)
    assert counts and cached
    numbers = [int(number.replace(",", "")) for number in (*counts.groups(), cached[1], calls)]
    amount = None if cost == "unknown" else float(cost.removesuffix(" USD"))
    replay = re.search(r"a replay: answered from (\S+)", text)
    values = dict(zip((*FIGURES[:3], "calls"), numbers, strict=True))
    return _tokens({**values, "cost_usd": amount, "replay": replay and replay[1]})


def _listed(run: Run) -> Shown:
    listed = mleredux("runs", "--json", "--limit", "1000", "--runs-dir", str(run.path.parent)).json
    (row,) = [row for row in listed if row["id"] == run.id]
    return {name: row[name] for name in ("cost_usd", "tokens")}


def _served(run: Run) -> Shown:
    facts = facts_of(run)
    assert facts.llm_tokens == facts.results["tokens"]
    return {name: facts.results[name] for name in ("cost_usd", "tokens")}


def _compared(run: Run) -> Shown:
    row = read_run(run.path, rollouts=False)
    return {"cost_usd": row.cost_usd, "tokens": row.tokens}


def _analyzed(run: Run) -> Shown:
    results, shown = Results((read_run(run.path, rollouts=False),)), {}
    for name in ("cost_usd", "tokens"):
        (arm,) = analyse(results, name, whole=False).arms
        shown[name] = arm.estimates[name].mean if name in arm.estimates else None
    return shown


def _browsed(run: Run) -> Shown:
    trace = StepFile((run.path / "rollout.json").read_text(encoding="utf-8"))
    trace.wait()
    return {"prompt_tokens": trace.prompt_tokens, "completion_tokens": trace.completion_tokens} | {
        "cost_usd": trace.cost_usd
    }


def _tracked(run: Run) -> Shown:
    points = {point.key: point.value for point in tracked(run).points if point.key.startswith("llm/")}
    names = ("calls", "failed", *FIGURES)
    return {name: points.get(f"llm/{name}") for name in names if name == "cost_usd" or f"llm/{name}" in points}


def _exported(run: Run, to: str, suffix: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"out{suffix}")
        words = ("export", run.id, "--to", to, "-o", str(path), "--all", "--runs-dir", str(run.path.parent))
        listed = mleredux(*words)
        assert listed.code == 0, listed
        return path.read_bytes()


def _inspect(run: Run) -> Shown:
    with tempfile.TemporaryFile() as file:
        file.write(_exported(run, "inspect", ".eval"))
        with zipfile.ZipFile(file) as archive:
            header = json.loads(archive.read("header.json"))
    usage = list(header["stats"]["model_usage"].values())
    costs = [one["total_cost"] for one in usage]
    cached = sum(one["input_tokens_cache_read"] for one in usage)
    return {
        "prompt_tokens": sum(one["input_tokens"] for one in usage) + cached,
        "completion_tokens": sum(one["output_tokens"] for one in usage),
        "cached_tokens": cached,
        "tokens": sum(one["total_tokens"] for one in usage),
        "cost_usd": None if None in costs else sum(costs),
    }


def _otlp(run: Run) -> Shown:
    names = {
        "gen_ai.usage.input_tokens": "prompt_tokens",
        "gen_ai.usage.output_tokens": "completion_tokens",
        "gen_ai.usage.cache_read.input_tokens": "cached_tokens",
    }
    shown: Shown = dict.fromkeys(names.values(), 0) | {"cost_usd": None, "replay": None}
    (resource,) = json.loads(_exported(run, "otlp", ".json"))["resourceSpans"]
    for span in resource["scopeSpans"][0]["spans"]:
        for attribute in span["attributes"]:
            (value,) = attribute["value"].values()
            if attribute["key"] in names:
                shown[names[attribute["key"]]] += int(value)
            elif attribute["key"].removeprefix("mleredux.") in ("cost_usd", "replay"):
                shown[attribute["key"].removeprefix("mleredux.")] = value
    return shown


PLACES: dict[str, Callable[[Run], Shown]] = {
    "record": _record,
    "rollout": lambda run: _rollout(_stored(run)),
    "steps": _steps,
    "page": _page,
    "runs": _listed,
    "server": _served,
    "compare": _compared,
    "analyse": _analyzed,
    "view": _browsed,
    "tracker": _tracked,
    "atif": lambda run: _rollout(json.loads(_exported(run, "atif", ".json"))),
    "inspect": _inspect,
    "otlp": _otlp,
}


def assert_same_usage(run: Run, replay: str | None = None) -> None:
    """Check that all places show the gateway's numbers; a replay costs nothing, and names the run that it repeats."""
    assert run.report is not None and run.report.ledger is not None and run.report.ledger.llm is not None
    llm = run.report.ledger.llm
    assert llm.replay == replay and (replay is None or llm.cost_usd == 0)
    truth = _tokens(llm.model_dump(include={"calls", "failed", "replay", *FIGURES}))
    differ: dict[tuple[str, str], Any] = {}
    for place, show in PLACES.items():
        for name, value in show(run).items():
            true = truth[name]
            if place in ("steps", "view") and not true:
                true, value = 0, value or 0  # no step has a cost
            near = pytest.approx(true, abs=5.1e-5 if place == "page" else 1e-9) if isinstance(true, float) else true
            if value != near:
                differ[place, name] = value
    assert not differ, f"{differ} instead of {truth}"
