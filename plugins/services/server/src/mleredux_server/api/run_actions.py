"""`/v1/runs/{id}`: cancel, retry, delete."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from mleredux_http_api import RunView

from mleredux_server.accounts.security import Runner
from mleredux_server.protocol.idempotency import claim_of
from mleredux_server.runs.changes import act_on_runs, change_run
from mleredux_server.runs.lookup import run_shown
from mleredux_server.scheduler.actions import cancel_runs, delete_run, retry_run
from mleredux_server.schemas.runs import BulkRequest, BulkView, RunChange
from mleredux_server.service import Current

router = APIRouter(prefix="/v1/runs", tags=["runs"])


@router.post("/{run_id}/cancel", status_code=202, responses={200: {"model": RunView}})
def cancel_run(run_id: str, caller: Runner, service: Current, response: Response) -> RunView:
    """Cancel a run; its existing files are kept. 200 if it has ended already."""
    run = run_shown(service, caller, run_id)
    if not cancel_runs(service, caller, [run.id], run.id):
        response.status_code = 200
    return run_shown(service, caller, run_id)


@router.post("/{run_id}/retry", status_code=202, response_model=RunView, responses={201: {"model": RunView}})
def retry(run_id: str, caller: Runner, request: Request, service: Current) -> Response:
    """Resume a run that did not fail because of its agent (202), or create a new one with the same request (201)."""
    run = run_shown(service, caller, run_id)
    claim = claim_of(request, caller, first=service.database)
    return retry_run(service, caller, run.id, claim).response()


@router.patch("/{run_id}")
def change(run_id: str, body: RunChange, caller: Runner, service: Current) -> RunView:
    """Change a run's labels, notes or pin, or the priority of a queued run; omitted fields stay unchanged."""
    change_run(service, caller, run_shown(service, caller, run_id).id, body)
    return run_shown(service, caller, run_id)


@router.post("/bulk")
def act_on_many(body: BulkRequest, caller: Runner, service: Current) -> BulkView:
    """Cancel, retry, delete or change up to 500 runs; runs that the action does not apply to are listed."""
    return BulkView(results=act_on_runs(service, caller, body))


@router.delete("/{run_id}", status_code=204)
def delete(run_id: str, caller: Runner, service: Current) -> None:
    """Delete a run and all its files; 409 while it is unfinished."""
    delete_run(service, caller, run_shown(service, caller, run_id).id)
