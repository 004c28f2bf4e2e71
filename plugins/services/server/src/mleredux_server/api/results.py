"""The results of a run: its report, its rollout, its scores over time, its resource usage."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from mleredux.models.base import parse
from mleredux.plugin.artifact import SCORES_FILE, TIMELINE_FILE, Report, read_timeline
from mleredux_rollout import Trajectory

from mleredux_server.accounts.security import Reader
from mleredux_server.files.manifest import read_document
from mleredux_server.files.responses import send_file
from mleredux_server.protocol.problems import Problem
from mleredux_server.runs.lookup import SeenRun, run_of
from mleredux_server.schemas.artifacts import Resources, Scores
from mleredux_server.service import Current

router = APIRouter(prefix="/v1/runs/{run_id}", tags=["results"])

_MAX_BYTES = 64 << 20
_NOT_YET: dict[int | str, dict[str, Any]] = {404: {"description": "The run does not exist, or has none (yet)."}}


@router.get("/report", response_model=Report, responses=_NOT_YET)
def get_report(run_id: str, caller: Reader, request: Request, service: Current) -> Response:
    """Get the grade report."""
    return _document(run_of(service, caller, run_id), "report.json", "report", request)


@router.get("/rollout", response_model=Trajectory, responses=_NOT_YET)
def get_rollout(run_id: str, caller: Reader, request: Request, service: Current) -> Response:
    """Get the rollout: the standard step-by-step trace."""
    return _document(run_of(service, caller, run_id), "rollout.json", "rollout", request)


@router.get("/scores", responses=_NOT_YET)
def get_scores(run_id: str, caller: Reader, service: Current) -> Scores:
    """Get the score over time: every version of the submission, oldest first."""
    run = run_of(service, caller, run_id)
    data = read_document(run, SCORES_FILE, _MAX_BYTES)
    if data is None:
        if not run.ended:
            raise _missing(run, "scores")
        return Scores(items=[])
    try:
        return Scores.model_validate({"items": parse(data)})
    except ValueError as error:
        raise Problem("conflict", f"{SCORES_FILE} of run {run.id} is damaged.") from error


@router.get("/resources", responses=_NOT_YET)
def get_resources(run_id: str, caller: Reader, service: Current) -> Resources:
    """Get the agent's resource usage over time so far."""
    run = run_of(service, caller, run_id)
    data = read_document(run, f"logs/{TIMELINE_FILE}", _MAX_BYTES)
    if data is None and not run.ended:
        raise _missing(run, "resources")
    return Resources(items=read_timeline(data or b""))


def _document(run: SeenRun, name: str, what: str, request: Request) -> Response:
    try:
        file = run.open(name.encode())
    except OSError:
        raise _missing(run, what) from None
    return send_file(request, file, path=name, media_type="application/json")


def _missing(run: SeenRun, what: str) -> Problem:
    if run.ended:
        hint = "See its message for the reason."
        return Problem("not-found", f"Run {run.id} ended ({run.status}) without {what}.", hint=hint)
    return Problem("not-yet", f"Run {run.id} is {run.status} and has no {what} yet.", hint="Try again when it is done.")
