"""The rollout as shown on the page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from mleredux.models.formats import duration, number
from mleredux.plugin.artifact import Run
from mleredux_rollout import (
    InvalidRollout,
    ObservationResult,
    Step,
    ToolCall,
    Trajectory,
    read_rollout,
    run_extra,
    step_extra,
    text_of,
)

from mleredux_artifact_reports.charts import Progress, progress_of
from mleredux_artifact_reports.documents import highlighted
from mleredux_artifact_reports.files import cut
from mleredux_artifact_reports.timeline import Timeline, tools_of

_FIRST, _LAST = 80, 120
_PAGE_CHARACTERS = 3_000_000
_TEXT_CHARACTERS = 8_000
_PER_STEP = 20
_HEADLINE = 160
_SHORT = 100
_CODE_ARGUMENTS = ("code", "command", "cmd", "script", "source", "query", "content")
_LANGUAGES = {
    "code": "python",
    "source": "python",
    "script": "python",
    "command": "bash",
    "cmd": "bash",
    "query": "sql",
}
_COLORED_CHARACTERS = 400_000
_MADE_FROM = {
    "agent": "written by the agent",
    "native logs": "read from the agent's native logs",
    "events": "reconstructed from the run's events, logs and code",
}


@dataclass(frozen=True)
class Text:
    """Text, and the number of its omitted characters; `html` is highlighted code."""

    text: str
    left_out: int
    html: Markup | None = None


@dataclass(frozen=True)
class CallView:
    """An action with its observations; `short` contains the arguments that fit on one line."""

    name: str
    short: list[tuple[str, str]]
    arguments: list[tuple[str, Text]]
    answers: list[Text]


@dataclass(frozen=True)
class StepView:
    """A step; `message` is empty if the headline contains all of it; `answers` are observations without a call."""

    number: int
    source: str
    time: str
    headline: str
    chips: list[tuple[str, str]]
    message: Text
    reasoning: Text | None
    calls: list[CallView]
    answers: list[Text]
    facts: list[tuple[str, str]]
    kinds: list[str]


@dataclass(frozen=True)
class RolloutView:
    """The complete trace; the middle of a long one is omitted; `validated` are the agent's own figures by version."""

    agent: str
    made_from: str
    notes: str
    steps: list[StepView]
    left_out: int
    left_out_after: int
    total: int
    totals: list[tuple[str, str]]
    progress: Progress | None
    tools: Timeline
    metric: str
    validated: dict[int, tuple[str | None, float]]


class _Budget:
    """A budget of characters for the page."""

    def __init__(self) -> None:
        self.left, self._colored = _PAGE_CHARACTERS, _COLORED_CHARACTERS

    def take(self, text: str, limit: int = _TEXT_CHARACTERS, language: str | None = None) -> Text:
        shown, left_out = cut(text, max(0, min(limit, self.left)))
        self.left -= len(shown)
        if language is None or len(shown) > self._colored:
            return Text(shown, left_out)
        self._colored -= len(shown)
        return Text(shown, left_out, highlighted(shown, language))


def rollout_of(run: Run) -> RolloutView | None:
    """Return the run's rollout, or None if it has none."""
    try:
        trajectory = read_rollout(run.path / "rollout.json")
    except InvalidRollout:
        return None
    steps = trajectory.steps
    long = len(steps) > _FIRST + _LAST
    shown = [*steps[:_FIRST], *steps[-_LAST:]] if long else steps
    facts = run_extra(trajectory)
    budget = _Budget()
    agent = trajectory.agent
    measured = [step_extra(step) for step in steps[:5_000]]
    lower = next((fact.lower_is_better for fact in measured if fact.lower_is_better is not None), None)
    if lower is None:
        lower = bool(facts and facts.lower_is_better)
    values = [
        (step.step_id, fact.validation_metric, bool(fact.is_buggy), _first_line(step)[:80])
        for step, fact in zip(steps, measured, strict=False)
        if fact.validation_metric is not None or fact.is_buggy
    ]
    return RolloutView(
        agent=" · ".join(filter(None, (f"{agent.name} {agent.version}"[:200], (agent.model_name or "")[:200]))),
        made_from=_MADE_FROM.get((facts.made_from if facts else None) or "", "of unknown origin"),
        notes=budget.take(trajectory.notes or "").text,
        steps=[_view(step, budget) for step in shown],
        left_out=len(steps) - len(shown),
        left_out_after=_FIRST if long else 0,
        total=len(steps),
        totals=_totals(trajectory),
        progress=progress_of(values[:2_000], lower),
        tools=tools_of([(step.timestamp, (step.extra or {}).get("seconds"), _tools(step)) for step in steps]),
        metric=next((fact.metric_name for fact in measured if fact.metric_name), "validation metric")[:80],
        validated={
            fact.submission_version: (fact.metric_name, fact.validation_metric)
            for fact in measured
            if fact.submission_version is not None and fact.validation_metric is not None
        },
    )


def _tools(step: Step) -> list[str]:
    return [call.function_name[:_SHORT] for call in step.tool_calls or ()]


def step_view(step: Step) -> StepView:
    """Return a step as shown on its own page."""
    return _view(step, _Budget())


def _view(step: Step, budget: _Budget) -> StepView:
    results = step.observation.results[:_PER_STEP] if step.observation else []
    calls = (step.tool_calls or [])[:_PER_STEP]
    answered = {call.tool_call_id for call in calls}
    reasoning = budget.take(step.reasoning_content) if step.reasoning_content else None
    words, headline = text_of(step.message), _first_line(step)
    fact = step_extra(step)
    scored = fact.submission_version is not None or fact.validation_metric is not None
    in_headline = words.strip() == headline and len(headline) <= _HEADLINE
    return StepView(
        number=step.step_id,
        source=step.source,
        time=(step.timestamp or "")[:40],
        headline=headline[:_HEADLINE],
        chips=_chips(step),
        message=budget.take("" if in_headline else words),
        reasoning=reasoning,
        calls=[_call(call, results, budget) for call in calls],
        answers=[budget.take(text_of(result.content)) for result in results if result.source_call_id not in answered],
        facts=_facts(step),
        kinds=[kind for kind, is_so in (("bad", fact.is_buggy), ("scored", scored)) if is_so],
    )


def _first_line(step: Step) -> str:
    """Return the first words of a step, or its actions if it has no words."""
    for line in text_of(step.message)[:2_000].splitlines():
        if words := line.strip().lstrip("#").strip():
            return words
    return ", ".join(_tools(step)[:3]) or "(no message)"


def _call(call: ToolCall, results: list[ObservationResult], budget: _Budget) -> CallView:
    """Return arguments by name: code first and unchanged, everything else as JSON."""
    ordered = sorted(call.arguments.items(), key=lambda item: item[0] not in _CODE_ARGUMENTS)[:_PER_STEP]
    readable = [(name[:_SHORT], _readable(value)) for name, value in ordered]
    short = [name for name, value in readable if len(value) <= _SHORT and "\n" not in value]
    answers = [text_of(result.content) for result in results if result.source_call_id == call.tool_call_id]
    return CallView(
        name=call.function_name[:_SHORT],
        short=[(name, value) for name, value in readable if name in short],
        arguments=[
            (name, budget.take(value, language=_LANGUAGES.get(name))) for name, value in readable if name not in short
        ],
        answers=[budget.take(answer) for answer in answers],
    )


def _readable(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, default=str)


def _chips(step: Step) -> list[tuple[str, str]]:
    """Return short labels for the line of a step: CSS class and text."""
    fact = step_extra(step)
    chips: list[tuple[str, str]] = []
    if fact.stage:
        chips.append(("plain", fact.stage[:24]))
    if fact.is_buggy:
        chips.append(("bad", "buggy"))
    if fact.validation_metric is not None:
        name = f"{fact.metric_name[:32]} " if fact.metric_name else "validation "
        chips.append(("metric", f"{name}{number(fact.validation_metric)}"))
    if fact.submission_version is not None:
        chips.append(("good", f"submission {fact.submission_version}"))
    if fact.score_after_run is not None:
        chips.append(("score", f"test score {number(fact.score_after_run)}"))
    return chips


def _facts(step: Step) -> list[tuple[str, str]]:
    """Return the facts about a step other than its text."""
    fact, metrics = step_extra(step), step.metrics
    known: list[tuple[str, Any]] = [
        ("node", fact.node_id and fact.node_id[:80]),
        ("from node", fact.parent_id and fact.parent_id[:80]),
        ("ran for", duration(fact.seconds) if fact.seconds is not None and 0 <= fact.seconds < 1e9 else None),
        ("model", step.model_name and step.model_name[:80]),
        ("prompt tokens", metrics and metrics.prompt_tokens),
        ("completion tokens", metrics and metrics.completion_tokens),
        ("cost", f"${metrics.cost_usd:,.4f}" if metrics and metrics.cost_usd is not None else None),
    ]
    return [(name, f"{value:,}" if isinstance(value, int) else value) for name, value in known if value is not None]


def _totals(trajectory: Trajectory) -> list[tuple[str, str]]:
    final = trajectory.final_metrics
    if final is None:
        return []
    known = [
        ("prompt tokens", final.total_prompt_tokens),
        ("completion tokens", final.total_completion_tokens),
        ("cached tokens", final.total_cached_tokens),
    ]
    totals = [(name, f"{value:,}") for name, value in known if value is not None]
    if final.total_cost_usd is not None:
        totals.append(("cost", f"${final.total_cost_usd:,.4f}"))
    return totals
