"""Change runs after their creation, one or many at once."""

from __future__ import annotations

import json

from mleredux.errors import MlereduxError
from mleredux.models.formats import counted
from sqlalchemy.exc import SQLAlchemyError

from mleredux_server.accounts.accounts import note
from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import Job, RunRow, now
from mleredux_server.protocol.problems import Problem, of_error
from mleredux_server.runs.lookup import run_shown
from mleredux_server.scheduler.actions import cancel_runs, delete_run, retry_run, set_labels
from mleredux_server.schemas.runs import BulkRequest, BulkResult, RunChange
from mleredux_server.service import Service


def change_run(service: Service, caller: Caller, run_id: str, asked: RunChange) -> None:
    """Apply the requested changes to a run.

    Raises:
        Problem: The priority is to change but the run has started, or it would have too many labels.
    """
    with service.database.writing() as session:
        row = session.get_one(RunRow, run_id, with_for_update=True)
        job = session.get_one(Job, run_id, with_for_update=True)
        if asked.labels is not None:
            set_labels(session, row, asked.labels)
        if "notes" in asked.model_fields_set:
            row.notes = asked.notes or None
        if asked.pinned is not None:
            row.pinned = asked.pinned
        if asked.priority is not None and asked.priority != job.priority:
            if job.state != "queued":
                raise Problem("conflict", f"Run {run_id} is not queued.", hint="Only queued runs have a priority.")
            row.priority = job.priority = asked.priority
            row.request = {**row.request, "priority": asked.priority}
        row.updated_at = now()
        note(session, caller, "run.change", f"{run_id} {' '.join(sorted(asked.model_fields_set))}")
    service.wake.set()


def act_on_runs(service: Service, caller: Caller, asked: BulkRequest) -> list[BulkResult]:
    """Apply an action to many runs; a run that it does not apply to gets a message, and does not affect the others."""
    results: dict[str, BulkResult] = {}
    seen: list[str] = []
    for run_id in dict.fromkeys(asked.runs):
        try:
            seen.append(run_shown(service, caller, run_id).id)
        except Problem as problem:
            results[run_id] = BulkResult(run=run_id, ok=False, message=problem.detail)
    if asked.action == "cancel":
        cancel_runs(service, caller, seen, counted(len(seen), "run"))
    for run_id in seen:
        try:
            made = run_id
            if asked.action == "delete":
                delete_run(service, caller, run_id)
            elif asked.action == "retry":
                made = str(json.loads(retry_run(service, caller, run_id).body)["id"])
            elif asked.action == "change":
                change_run(service, caller, run_id, asked.change or RunChange())
            results[run_id] = BulkResult(run=made, ok=True, message=None)
        except (Problem, MlereduxError, SQLAlchemyError, OSError) as error:
            results[run_id] = BulkResult(run=run_id, ok=False, message=of_error(error).detail)
    return [results[run_id] for run_id in dict.fromkeys(asked.runs)]
