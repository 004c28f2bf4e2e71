"""Conversion of a run's record to a scenario of mleredux-scripted-llm: an agent test generated from a real run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mleredux_llm_protocols import Action, finish_of, reply_turn, reported
from mleredux_rollout import ExportedRun, Format

from mleredux_gateway.record import CALLS, FOLDER, read_calls


def _write(runs: Sequence[ExportedRun], _options: Mapping[str, Any]) -> Iterable[bytes]:
    [exported] = runs
    calls = sorted(read_calls(exported.run.path / FOLDER / CALLS), key=lambda call: int(call["call"]))
    answered = [call for call in calls if isinstance(call.get("request"), dict) and call.get("response") is not None]
    rules = [
        {"name": f"call-{number}", "when": {"calls": number}, "reply": reply_of(call)}
        for number, call in enumerate(answered)
    ]
    models = list(dict.fromkeys(str(call["request"].get("model")) for call in answered))
    yield f"# The answers of run {exported.run.id}, in order. JSON is YAML, too.\n".encode()
    yield json.dumps({"models": models, "rules": rules}, indent=1, ensure_ascii=False).encode() + b"\n"


def reply_of(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply in a scenario that corresponds to the answer to this call."""
    response, kind = call["response"], call["kind"]
    if call.get("status") != 200 or not isinstance(response, dict):
        failure = response.get("error") if isinstance(response, dict) else response
        message = failure.get("message") if isinstance(failure, dict) else failure
        return {"error": {"status": int(call.get("status") or 502), "message": str(message)}}
    turn = reply_turn(kind, response)
    text = "".join(turn.texts) if turn else ""
    tools = [_tool(action) for action in turn.actions] if turn else []
    reply: dict[str, Any] = {"text": text} if text or not tools else {}
    reply |= {"tools": tools} if tools else {}
    finish = finish_of(kind, response)
    reply |= {"finish": finish} if finish in ("length", "content_filter") else {}
    if tokens := reported(kind, response):
        reply["usage"] = {"prompt": tokens.prompt, "completion": tokens.completion, "cached": tokens.cached}
    return reply


def _tool(action: Action) -> dict[str, Any]:
    written = "arguments" if isinstance(action.arguments, dict) else "raw_arguments"
    return {"name": action.name, written: action.arguments}


SCENARIO = Format(
    id="scenario",
    title="Scenario of mleredux-scripted-llm: the recorded answers of language models, in order",
    suffix=".yaml",
    write=_write,
)
