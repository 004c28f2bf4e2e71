"""Language model usage of a run: the gateway's figures replace those of agents, which are only claims."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from mleredux.plugin.artifact import LlmUse
from mleredux_rollout import FinalMetrics, Metrics, Step, Trajectory, add_usage

_FIGURES = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")


def with_measured_usage(trajectory: Trajectory, llm: LlmUse, recorded: Trajectory | None) -> Trajectory:
    """Return the trace with the gateway's totals; its steps get the usage of the recorded calls, which adds up to these
    totals.

    If the agent's steps report as many calls as were recorded, they are matched in order; otherwise a call counts for
    the agent's first step that ended after it. Usage that no recorded call explains counts for the last step.

    Args:
        llm: The gateway's totals.
        recorded: The trace derived from the recorded calls; None if there is none.
    """
    steps = trajectory.steps
    calls = [step for step in recorded.steps if step.metrics is not None] if recorded is not None else []
    own = [place for place, step in enumerate(steps) if step.source == "agent" and step.llm_call_count != 0]
    used: dict[int, list[Metrics | None]] = {place: [] for place in own}
    for place, call in zip(_places(steps, own, calls), calls, strict=False):
        used[place].append(call.metrics)
    if own:
        used[own[-1]].append(_rest(llm, add_usage(call.metrics for call in calls) or Metrics()))
    replay = {"replay": llm.replay} if llm.replay is not None else {}
    final = FinalMetrics(
        **{f"total_{name}": getattr(llm, name) for name in _FIGURES},
        total_steps=len(steps),
        extra={"llm_calls": llm.calls, "failed_calls": llm.failed, "refused_calls": llm.refused, **replay},
    )
    return _without_usage(trajectory).model_copy(
        update={"steps": [_measured(step, used.get(place, [])) for place, step in enumerate(steps)]}
        | {"final_metrics": final}
    )


def _places(steps: Sequence[Step], own: list[int], calls: Sequence[Step]) -> list[int]:
    """Return, for each call, the index of the agent's step it counts for; empty if there are no steps."""
    reporting = [place for place in own if steps[place].metrics is not None]
    if len(reporting) == len(calls) or not own:
        return reporting
    ends = sorted((time, place) for place in own if (time := _time(steps[place])) is not None)
    last = (0.0, own[-1])
    return [[*ends, last][bisect_left(ends, (_time(call) or 0.0, 0))][1] for call in calls]


def _time(step: Step) -> float | None:
    return datetime.fromisoformat(step.timestamp).timestamp() if step.timestamp else None


def _rest(llm: LlmUse, known: Metrics) -> Metrics:
    """Return the totals minus the recorded calls: failed or interrupted calls."""
    left = {name: (getattr(llm, name) or 0) - (getattr(known, name) or 0) for name in _FIGURES}
    rest: dict[str, Any] = {name: round(value, 9) for name, value in left.items() if value > 1e-9}
    return Metrics(**rest)


def _measured(step: Step, used: Sequence[Metrics | None]) -> Step:
    total = add_usage(used) or Metrics()
    metrics = (step.metrics or Metrics()).model_copy(update={name: getattr(total, name) for name in _FIGURES})
    return step.model_copy(update={"metrics": metrics if metrics.model_dump(exclude_none=True) else None})


def _without_usage(trajectory: Trajectory) -> Trajectory:
    parts = trajectory.subagent_trajectories
    return trajectory.model_copy(
        update={
            "steps": [_measured(step, ()) for step in trajectory.steps],
            "final_metrics": None,
            "subagent_trajectories": parts and [_without_usage(part) for part in parts],
        }
    )
