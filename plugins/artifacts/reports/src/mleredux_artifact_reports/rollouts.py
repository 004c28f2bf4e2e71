"""`rollout.json`: the agent's own trace, otherwise one from its native logs or recorded calls, or a reconstruction."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError, one_line
from mleredux.plugin.artifact import Artifact, LlmUse, Run
from mleredux.plugin.command import current
from mleredux_rollout import (
    MAX_BYTES,
    SCHEMA_VERSION,
    FinalMetrics,
    InvalidRollout,
    Metrics,
    RunExtra,
    Step,
    SubmissionFact,
    Trajectory,
    add_usage,
    dump_rollout,
    parse_rollout,
    problems_in,
    step_extra,
    with_run_extra,
    write_rollout,
)

from mleredux_artifact_reports.files import excerpt
from mleredux_artifact_reports.reconstruct import ending_of
from mleredux_artifact_reports.timeline import unix_time

_FIGURES = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")


def with_measured_usage(trajectory: Trajectory, llm: LlmUse, recorded: Trajectory | None) -> Trajectory:
    """Return the trace with the gateway's totals; its steps get the usage of the recorded calls, which adds up to these
    totals.

    If the agent's steps report as many calls as were recorded, they are matched in order; otherwise a call counts for
    the agent's first step that ended after it. Usage that no recorded call explains counts for the last step. If the
    run's cost is unknown, so is that of each step: otherwise, the cost of models with a price would be taken for the
    whole cost.

    Args:
        llm: The gateway's totals.
        recorded: The trace derived from the recorded calls; None if there is none.
    """
    steps = trajectory.steps
    calls = [step for step in recorded.steps if step.metrics is not None] if recorded is not None else []
    unpriced = {"cost_usd": None} if llm.cost_usd is None else {}
    own = [place for place, step in enumerate(steps) if step.source == "agent" and step.llm_call_count != 0]
    used: dict[int, list[Metrics | None]] = {place: [] for place in own}
    for place, call in zip(_places(steps, own, calls), calls, strict=False):
        used[place].append(call.metrics and call.metrics.model_copy(update=unpriced))
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
    ends = sorted((time, place) for place in own if (time := unix_time(steps[place].timestamp)) is not None)
    last = (0.0, own[-1])
    return [[*ends, last][bisect_left(ends, (unix_time(call.timestamp) or 0.0, 0))][1] for call in calls]


def _rest(llm: LlmUse, known: Metrics) -> Metrics:
    """Return the totals minus the recorded calls: failed or interrupted calls."""
    missing: dict[str, Any] = {name: (getattr(llm, name) or 0) - (getattr(known, name) or 0) for name in _FIGURES}
    return Metrics(**{name: round(value, 9) for name, value in missing.items() if value > 1e-9})


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


OWN = "rollout/trajectory.json"
"""Path of the agent's own trace, in its output folder."""
FROM_CALLS = "llm/trajectory.json"
"""Path of the trace that a gateway derived from the recorded calls, in the run's folder."""
_NAMED_PROBLEMS = 5


def produce_rollout(run: Run) -> Artifact:
    """Write the run's standard trace."""
    remarks: list[str] = []
    made_from, trajectory = trace_of(run, remarks)
    if (llm := run.log.state.llm) is not None:
        trajectory = with_measured_usage(trajectory, llm, _read(run.path, FROM_CALLS, "", []))
        if llm.replay is not None:
            remarks.append(f"The answers of language models were replayed from {llm.replay}, so they cost nothing.")
    facts = run_facts(run, made_from)
    scores = {fact.version: fact.score for fact in facts.submissions if fact.score is not None}
    trajectory = _with_known_scores(trajectory, scores, stored_versions(trajectory.steps, facts.submissions))
    notes = "\n".join(filter(None, (trajectory.notes, *remarks))) or None
    trajectory = _identified(trajectory, run.id).model_copy(update={"notes": notes})
    write_rollout(with_run_extra(trajectory, facts), run.path / "rollout.json")
    return Artifact(path="rollout.json", media_type="application/json", producer="reports", title="Rollout (ATIF)")


def trace_of(run: Run, notes: list[str]) -> tuple[str, Trajectory]:
    """Return the source of a run's trace, and the trace itself, even while the run is active.

    Args:
        notes: Receives problems with better sources.
    """
    made_from = "agent"
    trajectory = _read(run.output_dir, OWN, f"The agent's own output/{OWN}", notes)
    if trajectory is None:
        made_from, trajectory = "native logs", _native(run, notes)
    if trajectory is None:
        made_from, trajectory = "llm calls", _read(run.path, FROM_CALLS, f"The record's {FROM_CALLS}", notes)
    if trajectory is None:
        from mleredux_artifact_reports.reconstruct import reconstruct

        made_from, trajectory = "events", reconstruct(run)
        notes.append("Reconstructed from the run's events, logs and code.")
    return made_from, trajectory


def run_facts(run: Run, made_from: str) -> RunExtra:
    """Return the facts about the run for the document, without any environment variables."""
    events, report = run.events(), run.report
    scores = {fact.number: fact.score for fact in run.scores if fact.valid}
    ending = ending_of(run)
    starts = [event.time for event in events if event.type == "agent"]
    return RunExtra(
        run=run.id,
        task=run.spec.task,
        task_version=run.use.task_version,
        agent=run.spec.agent,
        agent_version=run.use.agent_version,
        seed=run.spec.seed,
        sandbox=run.spec.sandbox,
        image=run.use.image,
        packages=run.use.packages,
        state=str(ending.state),
        cause=str(ending.cause) if ending.cause else None,
        metric=report.metric if report else None,
        lower_is_better=report.is_lower_better if report else None,
        score=report.score if report else None,
        medal=report.medal if report else None,
        above_median=report.above_median if report else None,
        percentile=report.percentile if report else None,
        valid_submission=report.valid_submission if report else None,
        submissions=[
            SubmissionFact(
                version=version.number,
                time=version.time,
                seconds=round((version.time - starts[0]).total_seconds(), 3) if starts else None,
                size=version.size,
                score=scores.get(version.number),
            )
            for version in run.submissions()
        ],
        made_from=made_from,
    )


def _read(folder: Path, name: str, where: str, notes: list[str]) -> Trajectory | None:
    """Read a document from a folder; problems are added to the notes."""
    document = excerpt(folder, name, head=MAX_BYTES)
    if document is None:
        return None
    if document.left_out:
        notes.append(f"{where} was ignored: it is larger than the limit of {MAX_BYTES:,} bytes.")
        return None
    try:
        return parse_rollout(document.head)
    except InvalidRollout:
        problems = problems_in(document.head)
        named = "; ".join(str(problem) for problem in problems[:_NAMED_PROBLEMS])
        more = f"; and {len(problems) - _NAMED_PROBLEMS} more" if len(problems) > _NAMED_PROBLEMS else ""
        notes.append(f"{where} is not a valid rollout and was ignored: {named}{more}.")
    return None


def _native(run: Run, notes: list[str]) -> Trajectory | None:
    try:
        reader = current().agent(run.spec.agent).rollout_reader
    except MlereduxError as error:
        notes.append(f"The agent's reader for native logs is not available: {error.message}")
        return None
    if reader is None:
        return None
    try:
        trajectory = reader(run.output_dir)
        if trajectory is None:
            return None
        if not isinstance(trajectory, Trajectory):
            raise TypeError(f"it returned a {type(trajectory).__name__} instead of a Trajectory")
        return parse_rollout(dump_rollout(trajectory))
    except Exception as error:  # an agent's reader may raise anything; the error goes to the notes
        notes.append(f"The agent's native logs could not be read: {one_line(error)}")
    return None


def _identified(trajectory: Trajectory, run: str, *, embedded: bool = False) -> Trajectory:
    """Set the run's id as the document's id, since readers distinguish documents by it; an agent's id goes to `extra`.

    An embedded document keeps its `trajectory_id`: steps refer to it.
    """
    ids = {"session_id": run} if embedded else {"session_id": run, "trajectory_id": run}
    originals = {name: value for name in ids if (value := getattr(trajectory, name)) not in (None, run)}
    parts = trajectory.subagent_trajectories
    return trajectory.model_copy(
        update={
            **ids,
            "schema_version": SCHEMA_VERSION,
            "extra": {**(trajectory.extra or {}), **originals} or None,
            "subagent_trajectories": parts and [_identified(part, run, embedded=True) for part in parts],
        }
    )


def stored_versions(steps: Sequence[Step], submissions: Sequence[SubmissionFact]) -> dict[int, int]:
    """Return the mapping from the agent's submission numbers to the run's.

    An agent that writes faster than versions are stored counts more of them. Each stored version is then the last one
    that the agent reported before storage; the others were overwritten.
    """
    reported: dict[int, float | None] = {}
    for step in steps:
        version = step_extra(step).submission_version
        if version is not None:
            reported[version] = unix_time(step.timestamp)
    if set(reported) <= {fact.version for fact in submissions}:
        return {version: version for version in reported}
    versions: dict[int, int] = {}
    timed = sorted((time, version) for version, time in reported.items() if time is not None)
    after = -math.inf
    for fact in submissions:
        stored = fact.time.timestamp()
        before = [version for time, version in timed if after < time <= stored]
        versions |= {before[-1]: fact.version} if before else {}
        after = stored
    return versions


def _with_known_scores(trajectory: Trajectory, scores: dict[int, float], stored: dict[int, int]) -> Trajectory:
    """Add the run's version and test score to each step that submitted one, and remove scores everywhere else.

    Test scores claimed by an agent are removed: only the run knows the real ones.
    """

    def corrected(step: Step) -> Step:
        if step.extra is None:
            return step
        known = ("score_after_run", "submission_version")
        extra = {name: value for name, value in step.extra.items() if name not in known}
        version = stored.get(step_extra(step).submission_version or 0)
        if version is not None:
            extra["submission_version"] = version
            extra |= {"score_after_run": scores[version]} if version in scores else {}
        return step.model_copy(update={"extra": extra or None})

    embedded = trajectory.subagent_trajectories
    return trajectory.model_copy(
        update={
            "steps": [corrected(step) for step in trajectory.steps],
            "subagent_trajectories": embedded and [_with_known_scores(part, {}, {}) for part in embedded],
        }
    )
