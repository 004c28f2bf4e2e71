"""`/v1/runs`: create, list, get."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from mleredux.errors import MlereduxError, NotFound, StoreError
from mleredux.plugin.artifact import Report, Run
from mleredux_http_api import RunView

from mleredux_server.accounts.secrets import providing
from mleredux_server.accounts.security import Reader, Runner
from mleredux_server.protocol.idempotency import claim_of
from mleredux_server.protocol.problems import Problem
from mleredux_server.runs.lists import Wanted, runs_page
from mleredux_server.runs.lookup import run_shown
from mleredux_server.runs.references import pin_agent
from mleredux_server.runs.requests import make_runs, plan_run
from mleredux_server.runs.views import run_created
from mleredux_server.schemas.pages import Page, Pages
from mleredux_server.schemas.runs import RunDetail, RunRequest
from mleredux_server.service import Current, Service

router = APIRouter(prefix="/v1/runs", tags=["runs"])


@router.post("", status_code=201, response_model=RunView)
def create_run(body: RunRequest, caller: Runner, request: Request, service: Current) -> Response:
    """Create a run; it is queued until resources are available."""
    claim = claim_of(request, caller, body, first=service.database)
    with providing(service, caller, body.secrets, body.project):
        body = body.model_copy(update={"agent": pin_agent(service, caller, body.agent, body.options)})
        planned = plan_run(service, body)
    rows = make_runs(service, caller, [planned], body, claim=claim, answer=lambda rows: run_created(rows, caller))
    return run_created(rows, caller).response()


@router.get("")
def list_runs(caller: Reader, service: Current, wanted: Annotated[Wanted, Depends()], paging: Pages) -> Page[RunView]:
    """List runs visible to the caller, newest first."""
    with service.database.reading() as session:
        items, cursor = runs_page(session, caller, wanted, paging)
    return Page[RunView](items=items, next=cursor)


@router.get("/{run_id}")
def get_run(run_id: str, caller: Reader, service: Current) -> RunDetail:
    """Get a run, with its report once there is one."""
    view = run_shown(service, caller, run_id)
    queue = service.forecasts.of(run_id) if view.waiting_for is not None else None
    return RunDetail(**view.model_dump(), report=_report(service, view.id), queue=queue)


def _report(service: Service, run_id: str) -> Report | None:
    try:
        return Run(service.ended_run(run_id)).report
    except NotFound:
        return None  # its directory is being created, or was deleted
    except StoreError:
        raise
    except (MlereduxError, ValueError, OSError) as error:
        hint = "Contact the server administrator, or delete the run."
        raise Problem("conflict", "The run's files can't be read.", hint=hint) from error
