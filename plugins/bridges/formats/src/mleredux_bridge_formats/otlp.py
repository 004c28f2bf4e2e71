"""OpenTelemetry spans as OTLP JSON, following the semantic conventions for generative AI (0.1.0, in development).

A run is a trace: a span for the agent, with a child span for each call of a language model or tool. The score is an
event of the agent's span.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from mleredux_rollout import ExportedRun, Format, Step, step_extra, text_of

from mleredux_bridge_formats.messages import chat

CONVENTIONS = "0.1.0"
_INTERNAL, _CLIENT = 1, 3
_ERROR = 2


def _write(runs: Sequence[ExportedRun], _options: Mapping[str, Any]) -> Iterable[bytes]:
    """Yield one `ExportTraceServiceRequest`, which collectors accept at `/v1/traces`."""
    resources = [
        {
            "resource": {"attributes": _attributes({"service.name": "mleredux", "mleredux.run.id": exported.run.id})},
            "scopeSpans": [
                {
                    "scope": {
                        "name": "mleredux",
                        "version": exported.run.use.packages.get("mleredux", ""),
                        "attributes": _attributes({"mleredux.gen_ai.conventions": CONVENTIONS}),
                    },
                    "spans": list(_spans(exported)),
                }
            ],
        }
        for exported in runs
    ]
    yield json.dumps({"resourceSpans": resources}, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _spans(exported: ExportedRun) -> Iterable[dict[str, Any]]:
    run, rollout = exported.run, exported.rollout
    assert rollout is not None
    events = run.events()
    begun, ended = events[0].time, events[-1].time
    prompt = chat(rollout)[0]
    agent = _span(run.id, "agent", None, f"invoke_agent {run.spec.agent}", _INTERNAL, begun, ended)
    agent["attributes"] = _attributes(
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": run.spec.agent,
            "gen_ai.conversation.id": run.id,
            "gen_ai.request.model": rollout.agent.model_name,
            "gen_ai.input.messages": _parts([(message["role"], str(message["content"])) for message in prompt]),
            "error.type": str(run.cause) if run.cause else None,
            "mleredux.task": run.spec.task,
            "mleredux.seed": run.spec.seed,
            "mleredux.cost_usd": total.total_cost_usd if (total := rollout.final_metrics) else None,
            "mleredux.replay": (total.extra or {}).get("replay") if total else None,
        }
    )
    if run.cause:
        agent["status"] = {"code": _ERROR, "message": run.message or ""}
    if (report := exported.report) is not None:
        result = {
            "gen_ai.evaluation.name": report.metric,
            "gen_ai.evaluation.score.value": exported.score,
            "gen_ai.evaluation.score.label": "valid" if report.valid_submission else "invalid",
            "gen_ai.evaluation.explanation": report.message,
        }
        graded = {"name": "gen_ai.evaluation.result", "timeUnixNano": _nanoseconds(report.created_at)}
        agent["events"] = [{**graded, "attributes": _attributes(result)}]
    yield agent
    times = [_time(step, begun) for step in rollout.steps]
    for place, step in enumerate(rollout.steps):
        if step.source == "agent":
            end = times[place + 1] if place + 1 < len(times) else ended
            yield from _step(
                run.id, agent["spanId"], step, step.model_name or rollout.agent.model_name, times[place], end
            )


def _step(
    run: str, parent: str, step: Step, model: str | None, begun: datetime, ended: datetime
) -> Iterable[dict[str, Any]]:
    key, metrics = str(step.step_id), step.metrics
    if step.llm_call_count != 0:
        call = _span(run, key, parent, f"chat {model or ''}".strip(), _CLIENT, begun, max(begun, ended))
        call["attributes"] = _attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": model,
                "gen_ai.usage.input_tokens": metrics.prompt_tokens if metrics else None,
                "gen_ai.usage.output_tokens": metrics.completion_tokens if metrics else None,
                "gen_ai.usage.cache_read.input_tokens": metrics.cached_tokens if metrics else None,
                "gen_ai.output.messages": _parts([("assistant", text_of(step.message))]),
            }
        )
        yield call
    observed = step.observation.results if step.observation else ()
    results = {result.source_call_id: text_of(result.content) for result in observed}
    for call_ in step.tool_calls or ():
        span = _span(
            run,
            f"{key}/{call_.tool_call_id}",
            parent,
            f"execute_tool {call_.function_name}",
            _INTERNAL,
            begun,
            max(begun, ended),
        )
        span["attributes"] = _attributes(
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": call_.function_name,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": call_.tool_call_id,
                "gen_ai.tool.call.arguments": json.dumps(call_.arguments, ensure_ascii=False),
                "gen_ai.tool.call.result": results.get(call_.tool_call_id),
            }
        )
        if step_extra(step).is_buggy:
            span["status"] = {"code": _ERROR}
        yield span


def _span(
    run: str, key: str, parent: str | None, name: str, kind: int, begun: datetime, ended: datetime
) -> dict[str, Any]:
    """Return a span whose ids are derived from the run and its position in the run."""
    return {
        "traceId": hashlib.sha256(run.encode()).hexdigest()[:32],
        "spanId": hashlib.sha256(f"{run}/{key}".encode()).hexdigest()[:16],
        **({"parentSpanId": parent} if parent else {}),
        "name": name,
        "kind": kind,
        "startTimeUnixNano": _nanoseconds(begun),
        "endTimeUnixNano": _nanoseconds(ended),
    }


def _parts(messages: Sequence[tuple[str, str]]) -> str:
    """Return messages as JSON in the format of the conventions."""
    entries = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages]
    return json.dumps(entries, ensure_ascii=False)


def _attributes(values: Mapping[str, str | int | float | None]) -> list[dict[str, Any]]:
    kinds = {str: "stringValue", int: "intValue", float: "doubleValue"}
    return [
        {"key": key, "value": {kinds[type(value)]: str(value) if isinstance(value, int) else value}}
        for key, value in values.items()
        if value is not None
    ]


def _time(step: Step, otherwise: datetime) -> datetime:
    time = datetime.fromisoformat(step.timestamp) if step.timestamp else otherwise
    return time if time.tzinfo else time.replace(tzinfo=otherwise.tzinfo)


def _nanoseconds(moment: datetime) -> str:
    return str(round(moment.timestamp() * 1_000_000) * 1000)


OTLP = Format(
    id="otlp",
    title="OpenTelemetry spans for generative AI (OTLP JSON)",
    suffix=".json",
    write=_write,
    together=True,
    needs=("rollout",),
)
