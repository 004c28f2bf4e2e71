"""`/v1/submissions` and `/v1/validations`: predictions without an agent."""

from __future__ import annotations

import re
import time
from typing import Annotated, Any

import anyio
from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from mleredux_http_api import SubmissionView

from mleredux_server.accounts.security import Caller, Grader, Reader
from mleredux_server.database.tables import Submission
from mleredux_server.files.uploads import form, received
from mleredux_server.protocol.idempotency import claim_of
from mleredux_server.runs.deadlines import submission_view
from mleredux_server.runs.lookup import find, newest
from mleredux_server.runs.submissions import answer_of, check_form, delete_submission, make_submission
from mleredux_server.schemas.pages import Page, Pages
from mleredux_server.schemas.submissions import VerdictView
from mleredux_server.service import Current, Service

router = APIRouter(prefix="/v1", tags=["submissions"])

_LONGEST_WAIT = 60
_FINAL = ("done", "failed")
_FORM = form("The submission.", "task", task="Its id.")
_GRADED: dict[int | str, dict[str, Any]] = {
    201: {"model": SubmissionView, "description": "Graded within the time given by `Prefer: wait=SECONDS`."},
    413: {"description": "The file is too large."},
}


@router.post("/submissions", status_code=202, response_model=SubmissionView, responses=_GRADED, openapi_extra=_FORM)
async def create_submission(caller: Grader, request: Request, service: Current) -> Response:
    """Submit a file for grading. With `Prefer: wait=SECONDS` (at most 60) the response waits for the grade."""
    async with received(request, service, caller, service.settings.max_upload_mb << 20) as upload:
        claim = claim_of(request, caller, upload.text("task"), upload.fields.get("project", ""), upload.sha256)
        view = await run_in_threadpool(make_submission, service, caller, upload, claim)
    seconds = _wait_seconds(request)
    if not seconds:
        return answer_of(view).response()
    view = await _graded(service, caller, request, view, seconds)
    answer = answer_of(view, 201 if view.status in _FINAL else 202).response()
    answer.headers["Preference-Applied"] = f"wait={seconds}"
    return answer


@router.get("/submissions")
def list_submissions(
    caller: Reader,
    service: Current,
    paging: Pages,
    task: Annotated[str | None, Query(max_length=512)] = None,
) -> Page[SubmissionView]:
    """List submissions visible to the caller, newest first."""
    where = [] if task is None else [Submission.task == task]
    with service.database.reading() as session:
        rows, cursor = newest(session, caller, Submission, paging, *where)
    return Page[SubmissionView](items=[submission_view(service, caller, row, name) for row, name in rows], next=cursor)


@router.get("/submissions/{submission_id}")
def get_submission(submission_id: str, caller: Reader, service: Current) -> SubmissionView:
    """Get a submission, with its report once it is graded."""
    return submission_view(service, caller, *find(service, caller, Submission, submission_id))


@router.delete("/submissions/{submission_id}", status_code=204)
def remove_submission(submission_id: str, caller: Grader, service: Current) -> None:
    """Delete a submission and its file; 409 while it is being graded."""
    delete_submission(service, caller, submission_id)


@router.post("/validations", responses={413: {"description": "The file is too large."}}, openapi_extra=_FORM)
async def validate_file(caller: Grader, request: Request, service: Current) -> VerdictView:
    """Check whether a file is well-formed; the file is not stored, and its score is not disclosed."""
    async with received(request, service, caller, service.settings.max_upload_mb << 20) as upload:
        verdict = await run_in_threadpool(check_form, service, upload)
    return VerdictView(valid=verdict.valid, message=verdict.message)


async def _graded(
    service: Service, caller: Caller, request: Request, view: SubmissionView, seconds: int
) -> SubmissionView:
    """Wait until the submission is graded or the time is over, and return it."""
    deadline, pause = time.monotonic() + seconds, 0.05
    while view.status not in _FINAL and time.monotonic() < deadline and not await request.is_disconnected():
        await anyio.sleep(min(pause, max(0.0, deadline - time.monotonic())))
        pause = min(1.0, pause * 1.5)
        view = await run_in_threadpool(_reread, service, caller, view)
    return view


def _reread(service: Service, caller: Caller, view: SubmissionView) -> SubmissionView:
    with service.database.reading() as session:
        row = session.get(Submission, view.id)
    return submission_view(service, caller, row, view.user) if row is not None else view


def _wait_seconds(request: Request) -> int:
    """Parse `Prefer: wait=N` (RFC 7240)."""
    for part in ",".join(request.headers.getlist("prefer")).split(","):
        if match := re.fullmatch(r"\s*wait\s*=\s*\"?(\d{1,9})\"?\s*(;.*)?", part, re.IGNORECASE):
            return min(_LONGEST_WAIT, int(match[1]))
    return 0
