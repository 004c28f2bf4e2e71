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


def change_run(service: Service, caller: Caller, run_id: str, change: RunChange) -> None:
    """Apply the requested changes to a run.

    Raises:
        Problem: The priority is to be changed but the run has started, or the run would have too many labels.
    """
    with service.database.writing() as session:
        row = session.get_one(RunRow, run_id, with_for_update=True)
        job = session.get_one(Job, run_id, with_for_update=True)
        if change.labels is not None:
            set_labels(session, row, change.labels)
        if "notes" in change.model_fields_set:
            row.notes = change.notes or None
        if change.pinned is not None:
            row.pinned = change.pinned
        if change.priority is not None and change.priority != job.priority:
            if job.state != "queued":
                raise Problem("conflict", f"Run {run_id} is not queued.", hint="Only queued runs have a priority.")
            row.priority = job.priority = change.priority
            row.request = {**row.request, "priority": change.priority}
        row.updated_at = now()
        note(session, caller, "run.change", f"{run_id} {' '.join(sorted(change.model_fields_set))}")
    service.wake.set()


def act_on_runs(service: Service, caller: Caller, body: BulkRequest) -> list[BulkResult]:
    """Apply an action to many runs; a run that it does not apply to gets a message, and does not affect the others."""
    results: dict[str, BulkResult] = {}
    seen: list[str] = []
    for run_id in dict.fromkeys(body.runs):
        try:
            seen.append(run_shown(service, caller, run_id).id)
        except Problem as problem:
            results[run_id] = BulkResult(run=run_id, ok=False, message=problem.detail)
    if body.action == "cancel":
        cancel_runs(service, caller, seen, counted(len(seen), "run"))
    for run_id in seen:
        try:
            resulting_id = run_id
            if body.action == "delete":
                delete_run(service, caller, run_id)
            elif body.action == "retry":
                resulting_id = str(json.loads(retry_run(service, caller, run_id).body)["id"])
            elif body.action == "change":
                change_run(service, caller, run_id, body.change or RunChange())
            results[run_id] = BulkResult(run=resulting_id, ok=True, message=None)
        except (Problem, MlereduxError, SQLAlchemyError, OSError) as error:
            results[run_id] = BulkResult(run=run_id, ok=False, message=of_error(error).detail)
    return [results[run_id] for run_id in dict.fromkeys(body.runs)]
