"""Predictions without an agent: receive them, grade them by a job, validate them."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from mleredux.errors import DataError, MlereduxError
from mleredux.models import Verdict
from mleredux.plugin.files import remove_tree, write_atomically
from mleredux.plugin.host import machine_slots, read_schema, validate
from mleredux.plugin.task import Task
from mleredux_http_api import SubmissionView
from sqlalchemy.orm import Session

from mleredux_server.accounts.identity import new_id
from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import Job, Project, Submission, now
from mleredux_server.files.uploads import Upload
from mleredux_server.protocol.idempotency import UNCLAIMED, Answer, Claim
from mleredux_server.protocol.problems import Problem, not_found
from mleredux_server.runs.admission import check_disk, check_waiting
from mleredux_server.runs.creation import make_job
from mleredux_server.runs.deadlines import left_today, terms_of
from mleredux_server.runs.views import as_view
from mleredux_server.service import Service

_GRADER_MB = 2048
_checking = threading.BoundedSemaphore(2)


def make_submission(service: Service, caller: Caller, upload: Upload, claim: Claim = UNCLAIMED) -> SubmissionView:
    """Store a file and queue its grading.

    Raises:
        Problem: A quota does not allow it, or there is no such project.
        MlereduxError: There is no such task.
    """
    task = service.catalogue.task(upload.text("task"))
    row = Submission(id=new_id("sub"), task=task.id, size=upload.size, sha256=upload.sha256)
    row.created_at, row.status = now(), "queued"
    if not is_prepared(service, task):
        row.message = "The task's data is prepared first, which may take a long time."
    megabytes = -(-upload.size // 2**20)
    job = Job(kind="grade", memory_mb=min(_GRADER_MB, machine_slots().memory_mb // 2), disk_mb=megabytes)
    name = f"submission{Path(task.submission.file).suffix}"
    project, terms = upload.fields.get("project") or None, terms_of(service, task.id)
    halves = terms is not None and terms.public

    def check(session: Session, home: Project) -> None:
        check_disk(session, home, megabytes)
        check_waiting(session, home, "grade")
        if left_today(session, terms, task.id, caller.user_id) == 0:
            raise Problem("quota-exceeded", f"You have no submissions left for {task.id} today (until 24:00 UTC).")

    def fill(folder: Path) -> None:
        upload.path.rename(folder / name)
        write_atomically(folder / "request.json", json.dumps({"task": task.id, "file": name, "halves": halves}))

    def answer(submission: Submission) -> Answer:
        return answer_of(as_view(SubmissionView, submission, user=caller.user_name))

    make_job(service, caller, row, job, project, check=check, fill=fill, answer=answer, claim=claim)
    return as_view(SubmissionView, row, user=caller.user_name)


def answer_of(view: SubmissionView, status: int = 202) -> Answer:
    """Return the response to a submission."""
    return Answer(status, {"Location": f"/v1/submissions/{view.id}"}, view.model_dump_json())


def delete_submission(service: Service, caller: Caller, submission_id: str) -> None:
    """Delete a submission that is not being graded.

    Raises:
        Problem: It does not exist, or is being graded.
    """
    with service.database.writing() as session:
        row, job = session.get(Submission, submission_id), session.get(Job, submission_id)
        if row is None or not caller.sees(row.project_id):
            raise not_found("submission", submission_id)
        if job is not None and job.state not in ("queued", "ended"):
            raise Problem("conflict", f"Submission {submission_id} is being graded.", hint="Wait until it is done.")
        if (terms := terms_of(service, row.task)) and terms.daily and not (terms.over or caller.all_projects):
            raise Problem("conflict", f"Submissions to {row.task} are counted, so they can't be deleted yet.")
        session.delete(row)
        if job is not None:
            session.delete(job)
    remove_tree(service.job_dir("grade", submission_id))


def is_prepared(service: Service, task: Task) -> bool:
    """Return whether a task's data is prepared."""
    try:
        return service.data.find(task) is not None
    except MlereduxError:
        return False


def check_form(service: Service, upload: Upload) -> Verdict:
    """Check whether a file is well-formed; the answers are not opened.

    Raises:
        Problem: The task is not prepared here, or too many are being checked.
        MlereduxError: There is no such task.
    """
    task = service.catalogue.task(upload.text("task"))
    try:
        prepared = service.data.find(task)
    except DataError:
        prepared = None
    if prepared is None:
        hint = "The first submission or run prepares it; try again later."
        raise Problem("conflict", f"The data of task {task.id} is not prepared on this server yet.", hint=hint)
    if not _checking.acquire(timeout=2):
        raise Problem("too-many-requests", "Other files are being checked.", headers={"Retry-After": "2"})
    try:
        return validate(read_schema(prepared.schema), upload.path)
    finally:
        _checking.release()
