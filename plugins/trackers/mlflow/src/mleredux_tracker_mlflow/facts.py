"""The data of a run that is sent to MLflow, derived only from the run's directory, so that it is deterministic."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from mleredux.models import Report, State
from mleredux.models.events import AgentEnded, AgentFound, GatewayUse, StageEnded
from mleredux.models.formats import plain
from mleredux.plugin.tracker import Event, Run, RunState

from mleredux_tracker_mlflow.masks import masked, masked_text

_MAX_KEY, _MAX_PARAM, _MAX_TAG = 250, 6000, 5000  # MLflow's own limits, the last one reduced for older stores
_MAX_OPTIONS = 300
_MAX_POINTS = 20_000
_NOT_IN_KEYS = re.compile(r"[^\w.\- /]", re.ASCII)
_COUNTS = ("calls", "failed", "refused", "prompt_tokens", "cached_tokens", "completion_tokens")
_VERDICTS = ("any_medal", "gold_medal", "silver_medal", "bronze_medal", "above_median", "valid_submission")
STATUSES = {State.DONE: "FINISHED", State.FAILED: "FAILED", State.TIMED_OUT: "FAILED", State.CANCELLED: "KILLED"}
"""MLflow's status for each final state; an unfinished run is RUNNING."""


class Point(NamedTuple):
    """One value of a metric.

    Attributes:
        time: Unix time in milliseconds, as recorded by the run.
        step: The submission's version, the second of the agent's run time, or the number of times a stage was entered.
    """

    key: str
    value: float
    time: int
    step: int


class Facts(NamedTuple):
    """Everything about a run that is sent, except its files."""

    params: dict[str, str]
    tags: dict[str, str]
    points: list[Point]
    status: str
    started: int
    ended: int | None


def facts_of(run: Run) -> Facts:
    """Read the facts from a run's directory."""
    events = run.events()
    state = run.log.state
    return Facts(
        params=_params(run),
        tags=_tags(run, state),
        points=list(_points(run, events)),
        status=STATUSES.get(state.state, "RUNNING"),
        started=_ms(state.began or run.spec.created_at),
        ended=_ms(state.entered) if state.state.final and state.entered else None,
    )


def has_secret_options(run: Run) -> bool:
    """Return whether options of the run are masked."""
    return bool(masked("options", run.spec.options) != _plain(run.spec.options))


def _params(run: Run) -> dict[str, str]:
    spec = run.spec
    parameters: dict[str, Any] = {
        "task": spec.task,
        "agent": spec.agent,
        "sandbox": spec.sandbox,
        "seed": spec.seed,
        "network": spec.network,
        "obfuscated": spec.obfuscated,
        **{f"limits.{name}": value for name, value in spec.limits.model_dump().items() if value is not None},
    }
    options = sorted(masked("options", spec.options).items())[:_MAX_OPTIONS]
    parameters |= {f"options.{name}": value for name, value in options}
    return {_key(name): _text(value)[:_MAX_PARAM] for name, value in parameters.items()}


def _tags(run: Run, state: RunState) -> dict[str, str]:
    use, report = run.use, run.report
    known: dict[str, Any] = {
        "mlflow.source.name": "mleredux",
        "mlflow.source.git.commit": use.git_commit,
        "mlflow.note.content": _note(run, state.state, report),
        "mleredux.run_id": run.id,
        "mleredux.status": str(state.state),
        "mleredux.cause": state.cause,
        "mleredux.message": state.message,
        "mleredux.medal": report.medal if report else None,
        "mleredux.verdict": report.verdict.status if report else None,
        "mleredux.metric": report.metric if report else None,
        "mleredux.direction": ("minimize" if report.is_lower_better else "maximize") if report else None,
        "mleredux.version": use.packages.get("mleredux"),
        "mleredux.packages": use.packages or None,
        "mleredux.task_version": use.task_version,
        "mleredux.agent_version": use.agent_version,
        "mleredux.image": use.image,
        "mleredux.python": use.python,
        "mleredux.host": use.host,
        "mleredux.git_commit": use.git_commit,
    }
    # Empty values are sent too: a run that failed, was resumed and succeeded no longer has a cause.
    return {name: _text("" if value is None else value)[:_MAX_TAG] for name, value in known.items()}


def _note(run: Run, state: State, report: Report | None) -> str:
    """Return the run's description for MLflow, in Markdown; it contains no text written by the agent."""
    note = f"Agent `{_text(run.spec.agent)}` on task `{run.spec.task}`, seed {run.spec.seed}: **{state}**"
    if report is not None and report.score is not None:
        better = "lower" if report.is_lower_better else "higher"
        medal = f", {report.medal} medal" if report.medal else ""
        note += f", {report.metric} {plain(report.score, 6)} ({better} is better){medal}"
        note += "" if report.verdict.trusted else f"; {report.verdict.status}, so it does not count"
    return f"{note}.\n\n{report.note}" if report is not None and report.note else f"{note}."


def _points(run: Run, events: list[Event]) -> Iterator[Point]:
    """Yield all metrics; values that are not finite are omitted."""
    for point in (*_stages(events), *_scores(run), *_verdict(run), *_outcome(events), *_resources(run, events)):
        if math.isfinite(point.value):
            yield point


def _stages(events: list[Event]) -> Iterator[Point]:
    entered: dict[str, int] = {}
    for event in events:
        stage = event.payload
        if isinstance(stage, StageEnded) and stage.seconds is not None:
            key = f"stage_seconds/{_key(stage.stage)}"
            yield Point(key, stage.seconds, _ms(event.time), entered.get(key, 0))
            entered[key] = entered.get(key, 0) + 1


def _scores(run: Run) -> Iterator[Point]:
    for version in run.scores[:_MAX_POINTS]:
        if version.score is not None:
            yield Point("score_over_time", version.score, _ms(version.time), version.number)


def _verdict(run: Run) -> Iterator[Point]:
    report = run.report
    if report is None:
        return
    time = _ms(report.created_at)
    for name, value in (("score", report.score), ("percentile", report.percentile)):
        if value is not None:
            yield Point(name, value, time, 0)
    for name in _VERDICTS:
        yield Point(name, float(getattr(report, name)), time, 0)
    if report.ledger is not None:
        yield Point("validations", float(report.ledger.validations), time, 0)


def _outcome(events: list[Event]) -> Iterator[Point]:
    """Yield how the agent ended, and its use of language models each time it was reported."""
    ends = uses = 0
    for event in events:
        happened = event.payload
        if isinstance(happened, AgentEnded) and (outcome := happened.outcome):
            named = {"agent_seconds": "seconds", "agent_cpu_seconds": "cpu_seconds", "max_memory_mb": "max_memory_mb"}
            for key, name in named.items():
                if (value := getattr(outcome, name)) is not None:
                    yield Point(key, float(value), _ms(event.time), ends)
            ends += 1
        if isinstance(happened, GatewayUse) and (used := happened.use):
            for name in _COUNTS:
                yield Point(f"llm/{name}", float(getattr(used, name)), _ms(event.time), uses)
            if used.cost_usd is not None:
                yield Point("llm/cost_usd", used.cost_usd, _ms(event.time), uses)
            uses += 1


def _resources(run: Run, events: list[Event]) -> Iterator[Point]:
    """Yield the agent's resource usage, by seconds of its run time."""
    begun = [
        event_data
        for event_data in (event.payload for event in events)
        if isinstance(event_data, AgentFound) and event_data.started_at
    ]
    fresh = [event_data for event_data in begun if event_data.status == "started"] or begun
    if not fresh:
        return
    start, before = float(fresh[-1].started_at or 0), None
    for sample in run.resources()[:_MAX_POINTS]:
        time, step = round((start + sample.seconds) * 1000), round(sample.seconds)
        for name in ("memory_mb", "cpu_seconds", "processes", "gpu_percent", "gpu_memory_mb"):
            value = getattr(sample, name)
            if value is not None:
                yield Point(f"resources/{name}", float(value), time, step)
        if before is not None and None not in (sample.cpu_seconds, before.cpu_seconds):
            passed, worked = sample.seconds - before.seconds, (sample.cpu_seconds or 0) - (before.cpu_seconds or 0)
            if passed > 0 and worked >= 0:
                yield Point("resources/cpus", round(worked / passed, 3), time, step)
        before = sample


def _key(name: str) -> str:
    """Return a name that MLflow accepts and does not reject as a path."""
    parts = [part for part in _NOT_IN_KEYS.sub("_", name).split("/") if part.strip(". ")]
    return "/".join(parts)[:_MAX_KEY].rstrip("/") or "_"


def _text(value: Any) -> str:
    """Return a value as text without secrets."""
    if isinstance(value, str):
        return masked_text(value)
    return masked_text(json.dumps(value, ensure_ascii=False, sort_keys=True, default=str))


def _plain(value: Any) -> Any:
    """Return a value converted like `masked` does, but without masking."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)
