"""Scorers for a sample's run, which is graded when the solver has ended."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import anyio
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState
from inspect_ai.util import sandbox
from mleredux import Run
from mleredux_agents import rule_of

from mleredux_bridge_inspect.sandbox import SessionSandbox
from mleredux_bridge_inspect.solvers import RUN


async def _graded(state: TaskState) -> Run:
    """End the session of a sample, grade it, and return the run."""
    path = state.store.get(RUN)
    if path is None or not (run := Run(Path(path))).state.final:
        run = await anyio.to_thread.run_sync(sandbox().as_type(SessionSandbox).session.finish)
    return run


@scorer(metrics=[mean(), stderr()])
def standing() -> Scorer:
    """Score like other bridges by default: 0.1 to 1 for a valid submission, by leaderboard standing; else 0."""

    async def scored(state: TaskState, target: Target) -> Score:
        run = await _graded(state)
        message = run.report.message if run.report is not None else run.message
        return Score(value=rule_of("standing").of(run), explanation=message, metadata=_facts(run))

    return scored


@scorer(metrics=[mean(), stderr()])
def score() -> Scorer:
    """Score by the task's own metric; samples without a finite score are not scored."""

    async def scored(state: TaskState, target: Target) -> Score:
        run = await _graded(state)
        report = run.report
        if report is None or report.score is None or not math.isfinite(report.score):
            message = report.message if report is not None else run.message
            reason = "infinite_score" if report is not None and report.valid_submission else "invalid_submission"
            return Score.unscored(explanation=message, reason=reason, metadata=_facts(run))
        return Score(value=report.score, explanation=report.message, metadata=_facts(run))

    return scored


@scorer(metrics=[mean()])
def valid() -> Scorer:
    """Score 1 for a valid submission, else 0."""

    async def scored(state: TaskState, target: Target) -> Score:
        run = await _graded(state)
        report = run.report
        message = report.message if report is not None else run.message
        return Score(value=int(report is not None and report.valid_submission), explanation=message)

    return scored


def _facts(run: Run) -> dict[str, Any]:
    facts: dict[str, Any] = {"run": run.id, "agent": run.spec.agent, "state": str(run.state)}
    if (report := run.report) is not None:
        names = {"metric", "is_lower_better", "medal", "above_median", "percentile"}
        facts |= {name: value for name, value in json.loads(report.model_dump_json()).items() if name in names}
        facts |= {"medal": report.medal, "verdict": str(report.verdict.status)}
    return facts
