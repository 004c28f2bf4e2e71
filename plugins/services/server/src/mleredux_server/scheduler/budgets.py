"""Budgets of experiments, and the sequential rule: when either ends an experiment, its queued runs are cancelled."""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from mleredux.errors import MlereduxError
from mleredux.models.formats import plain
from mleredux.plugin.artifact import Cause, Run
from mleredux.plugin.experiment import Plan
from sqlalchemy import select
from sqlalchemy.orm import Session

from mleredux_server.database.tables import Experiment, Job, RunRow
from mleredux_server.runs.summary import ENDED, facts_of, lacks_result, run_at
from mleredux_server.scheduler.jobs import end_run
from mleredux_server.service import Service

_LOG = structlog.get_logger()


def charge(session: Session, run: Run) -> str | None:
    """Add a run's usage to its experiment, in the transaction that ends its job.

    A run that may be resumed is kept in `charged`, so that only its additional usage is added when it ends again. A run
    whose job has ended is not charged again.

    Returns:
        The id of the experiment if one of its budgets is used up.
    """
    row, job = session.get(RunRow, run.id), session.get(Job, run.id)
    if row is None or row.experiment_id is None or job is None:
        return None
    experiment = session.get(Experiment, row.experiment_id, with_for_update=True)
    if job.state == "ended":  # the database failed before the queued runs were cancelled
        return experiment.id if experiment is not None and experiment.request.get("stopped") else None
    stop = ((experiment.request.get("plan") or {}).get("stop") or {}) if experiment is not None else {}
    most_cost, most_hours = stop.get("max_cost_usd"), stop.get("max_hours")
    if experiment is None or (most_cost is None and most_hours is None):
        return None
    before, charged = experiment.request.get("spent") or {}, dict(experiment.request.get("charged") or {})
    outcome, llm, earlier = run.outcome, run.log.state.llm, charged.pop(run.id, (0.0, 0.0))
    used = ((llm.cost_usd if llm else None) or 0.0, (outcome.seconds if outcome else 0.0) / 3600)  # of all attempts
    cost = before.get("cost_usd", 0.0) + used[0] - earlier[0]
    hours = before.get("hours", 0.0) + used[1] - earlier[1]
    if lacks_result(run.state, run.cause):
        charged[run.id] = used
    stopped = None
    if most_cost is not None and cost >= most_cost:
        stopped = f"The budget of ${plain(most_cost)} is used up: the runs cost ${cost:.2f}."
    elif most_hours is not None and hours >= most_hours:
        stopped = f"The budget of {plain(most_hours)} hours is used up: the runs took {hours:.2f}."
    spent = {"cost_usd": cost, "hours": hours}
    experiment.request = {**experiment.request, "spent": spent, "charged": charged, "stopped": stopped}
    return experiment.id if stopped else None


def apply_sequential_rule(service: Service, experiment_id: str) -> str | None:
    """Test an experiment with the sequential rule if more seeds are complete than at the last look.

    Returns:
        The decision in a sentence, if there is one.
    """
    with service.database.reading() as session:
        experiment = session.get(Experiment, experiment_id)
        query = select(RunRow).where(RunRow.experiment_id == experiment_id)
        rows = session.scalars(query).all()
    document = (experiment.request.get("plan") if experiment is not None else None) or {}
    if experiment is None or (document.get("stop") or {}).get("rule") != "sequential":
        return None
    cells: dict[tuple[str | None, str, int], bool] = {}
    for row in rows:
        counts = row.status in ENDED and not lacks_result(row.status, row.cause)
        cells[row.arm, row.task, row.seed] = cells.get((row.arm, row.task, row.seed), False) or counts
    open_seeds = {seed for (*_, seed), ended in cells.items() if not ended}
    done = {seed for *_, seed in cells} - open_seeds
    if len(done) < 2 or len(done) <= experiment.request.get("looked", 0) or not open_seeds:
        return None
    plan, folders = Plan.model_validate(document), [service.store.path / row.id for row in rows if row.seed in done]
    try:
        from mleredux_experiments.shared import decide

        decision = decide(plan, folders, len(done))
    except MlereduxError as error:
        _LOG.warning("an experiment can't be tested", experiment=experiment_id, reason=str(error))
        decision = None
    with service.database.writing() as session:
        there = session.get(Experiment, experiment_id, with_for_update=True, populate_existing=True)
        if there is None or there.request["plan"] != document:
            return None  # it was extended meanwhile, and is tested when the next run ends
        there.request = {**there.request, "looked": len(done), **({"stopped": decision} if decision else {})}
    return decision


def stop_queued(service: Service, experiment_id: str) -> None:
    """Cancel the runs of an experiment that no worker has; active ones continue."""
    with service.database.reading() as session:
        experiment = session.get_one(Experiment, experiment_id)
        query = select(Job.id).join(RunRow, RunRow.id == Job.id)
        queued: Sequence[str] = session.scalars(
            query.where(RunRow.experiment_id == experiment_id, Job.state == "queued")
        ).all()
        message = str(experiment.request.get("stopped") or "")
    for run_id in queued:
        try:
            run = run_at(service.store, run_id)
            if not run.give_up(Cause.CANCELLED, message):
                continue
            facts = facts_of(run)
        except (MlereduxError, ValueError, OSError):
            continue  # its directory is missing or damaged; the dispatcher ends it
        with service.database.writing() as session:
            end_run(session, run_id, facts, 1)
