"""Logs of Inspect (`.eval`, version 2): archives for `inspect view` and `read_eval_log`."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mleredux.plugin.artifact import State
from mleredux_rollout import ExportedRun, Format, Trajectory

from mleredux_bridge_formats.messages import Message, chat

_STATUS = {State.DONE: "success", State.CANCELLED: "cancelled"}


def _write(runs: Sequence[ExportedRun], _options: Mapping[str, Any]) -> Iterable[bytes]:
    for exported in runs:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, document in _members(exported):
                archive.writestr(name, json.dumps(document, ensure_ascii=False, allow_nan=False))
        yield content.getvalue()


def _members(exported: ExportedRun) -> Iterable[tuple[str, Any]]:
    run, report, rollout = exported.run, exported.report, exported.rollout
    assert rollout is not None
    events = run.events()
    started, ended = (events[0].time, events[-1].time) if events else (run.spec.created_at, run.spec.created_at)
    model = rollout.agent.model_name or f"none/{run.spec.agent}"
    usage = _usage(rollout, model)
    before, after = chat(rollout)
    scores = _scores(exported)
    error = {"message": run.message or str(run.cause), "traceback": "", "traceback_ansi": ""} if run.cause else None
    about = {**run.spec.model_dump(include={"agent", "seed", "sandbox"}), "task_data": run.use.task_data}
    about |= {"replay": llm.replay} if report and report.ledger and (llm := report.ledger.llm) and llm.replay else {}
    spec = {
        "eval_id": run.id,
        "run_id": run.id,
        "created": run.spec.created_at.isoformat(),
        "task": run.spec.task,
        "task_id": run.spec.task,
        "task_version": run.use.task_version or 0,
        "task_display_name": exported.task.title if exported.task else run.spec.task,
        "solver": run.spec.agent,
        "dataset": {"name": run.spec.task, "samples": 1, "sample_ids": [run.spec.task]},
        "model": model,
        "config": {"epochs": 1, "time_limit": int(run.spec.limits.time_limit)},
        "packages": {"mleredux": run.use.packages.get("mleredux", "unknown")},
        "metadata": about,
    }
    plan = {"name": "plan", "steps": [{"solver": run.spec.agent, "params": {}}]}
    sample = {
        "id": run.spec.task,
        "epoch": 1,
        "input": "\n\n".join(str(message["content"]) for message in before),
        "target": "",
        "messages": [_message(message) for message in before + after],
        "output": {"model": model, "choices": []},
        "scores": scores,
        "metadata": about,
        "model_usage": usage,
        "started_at": started.isoformat(),
        "completed_at": ended.isoformat(),
        "total_time": (ended - started).total_seconds(),
        "working_time": run.outcome.working_seconds if run.outcome else None,
        "uuid": run.id,
        "error": error,
    }
    results = {
        "total_samples": 1,
        "completed_samples": int(error is None),
        "scores": [
            {
                "name": name,
                "scorer": name,
                "scored_samples": 1,
                "metrics": {"mean": {"name": "mean", "value": score["value"]}},
                "metadata": {"lower_is_better": report.is_lower_better if report else None},
            }
            for name, score in scores.items()
        ],
    }
    kept = ("id", "epoch", "input", "target", "scores", "model_usage", "started_at", "completed_at", "total_time")
    summary = {**{name: sample[name] for name in kept}, "completed": True, "message_count": len(before) + len(after)}
    stats = {"started_at": started.isoformat(), "completed_at": ended.isoformat(), "model_usage": usage}
    status = _STATUS.get(run.state, "error" if error else "success")
    yield "_journal/start.json", {"version": 2, "eval": spec, "plan": plan}
    yield f"samples/{run.spec.task}_epoch_1.json", sample
    yield "summaries.json", [summary | ({"error": error["message"]} if error else {})]
    header = {"version": 2, "status": status, "eval": spec, "plan": plan, "results": results, "stats": stats}
    yield "header.json", {**header, "error": error}


def _scores(exported: ExportedRun) -> dict[str, Any]:
    """Return the score under the name of the metric; if there is none, the explanation states the reason."""
    report = exported.report
    if report is None:
        return {}
    fields = report.model_dump(
        mode="json", include={"medal", "above_median", "percentile", "valid_submission", "message"}
    )
    facts = {**fields, "medal": report.medal, "verdict": report.verdict.status, "why": report.verdict.why}
    if exported.score is None:
        return {"valid_submission": {"value": 0, "explanation": report.message, "metadata": facts}}
    return {report.metric: {"value": exported.score, "explanation": report.message, "metadata": facts}}


def _message(message: Message) -> Message:
    """Return a message in Inspect's format, whose tool calls have function and arguments next to the id."""
    calls = [
        {
            "id": call["id"],
            "function": call["function"]["name"],
            "arguments": json.loads(call["function"]["arguments"]),
            "type": "function",
        }
        for call in message.get("tool_calls", ())
    ]
    return {**message, "tool_calls": calls} if calls else message


def _usage(rollout: Trajectory, default: str) -> dict[str, Any]:
    """Return tokens and cost by model; if the steps do not add up to the rollout's total, the default has the total."""
    if (total := rollout.final_metrics) is None:
        return {}
    models: dict[str, list[Any]] = {}
    for step in rollout.steps:
        if (own := step.metrics) is not None:
            values = own.prompt_tokens, own.completion_tokens, own.cached_tokens, own.cost_usd
            before = models.get(step.model_name or default, [0] * 4)
            models[step.model_name or default] = [a + (b or 0) for a, b in zip(before, values, strict=True)]
    whole = [total.total_prompt_tokens or 0, total.total_completion_tokens or 0, total.total_cached_tokens or 0]
    if [sum(column) for column in zip(*models.values(), strict=True)][:3] != whole:
        models = {default: [*whole, total.total_cost_usd]}
    return {
        name: {
            "input_tokens": prompt - cached,
            "output_tokens": completion,
            "total_tokens": prompt + completion,
            "input_tokens_cache_read": cached,
            "total_cost": None if total.total_cost_usd is None else round(cost, 10),
        }
        for name, (prompt, completion, cached, cost) in models.items()
    }


INSPECT = Format(id="inspect", title="Inspect logs (.eval)", suffix=".eval", write=_write, needs=("rollout",))
