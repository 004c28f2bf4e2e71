"""User actions on runs: cancel, retry, delete. Each is idempotent, even if it is killed midway."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mleredux.errors import MlereduxError, NotFound, ResumeRefused, StoreError
from mleredux.plugin.artifact import CAUSES, FINAL, Cause, Run, State
from mleredux.plugin.files import remove_tree
from mleredux.plugin.host import check_resumable, provide_secrets
from mleredux_executor_nodes.shared import delete_replica
from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from mleredux_server.accounts.accounts import note
from mleredux_server.accounts.passed_secrets import forget_values
from mleredux_server.accounts.secrets import providing, secrets_of
from mleredux_server.accounts.security import Caller
from mleredux_server.database import batches
from mleredux_server.database.tables import Experiment, Job, Project, RunLabel, RunRow, User, now
from mleredux_server.protocol.idempotency import UNCLAIMED, Answer, Claim
from mleredux_server.protocol.problems import Problem
from mleredux_server.runs.references import check_agent
from mleredux_server.runs.requests import make_runs, plan_run
from mleredux_server.runs.sources import check_source
from mleredux_server.runs.summary import Facts, facts_of, lacks_result, run_at, write_row
from mleredux_server.runs.views import run_created, run_view
from mleredux_server.scheduler.history import forget_job
from mleredux_server.scheduler.jobs import STOPPED, end_run
from mleredux_server.schemas.accounts import Quota
from mleredux_server.schemas.runs import KeptRequest
from mleredux_server.service import Service

TRASH = "trash"
_RETRYING = threading.Lock()
"""Held while a run's directory and its row are updated, so that no other request decides to create a new run
instead."""
MOST_LABELS = 32


def cancel_runs(service: Service, caller: Caller, ids: Sequence[str], target: str) -> int:
    """Cancel runs; those that are not running are cancelled when this returns.

    Args:
        service: The service.
        caller: The requesting user.
        ids: Ids of runs that the caller may cancel.
        target: Recorded in the audit log.

    Returns:
        The number of runs that had not ended.
    """
    service.cancelling.update(ids)
    try:
        return _cancel_runs(service, caller, ids, target)
    finally:
        service.cancelling.difference_update(ids)
        service.wake.set()


def _cancel_runs(service: Service, caller: Caller, ids: Sequence[str], target: str) -> int:
    with service.database.writing() as session:
        resumable = (Job.state != "ended") | RunRow.status.not_in(sorted(map(str, FINAL)))
        query = select(RunRow.id).join(Job, Job.id == RunRow.id).where(resumable)
        cancelled = [run_id for some in batches(ids) for run_id in session.scalars(query.where(RunRow.id.in_(some)))]
        for run_id in cancelled:
            session.execute(update(Job).where(Job.id == run_id, Job.state != "ended").values(cancel=True))
        if cancelled:
            note(session, caller, "cancel", target)
    ended: dict[str, Facts] = {}
    for run_id in cancelled:
        try:
            run = run_at(service.store, run_id)
            run.ask_to_cancel()
            unattended = run.state is State.QUEUED or (not run.alive and _foreign(service, run_id))
            if unattended and run.give_up(Cause.CANCELLED, STOPPED):
                ended[run_id] = facts_of(run)
        except (NotFound, FileNotFoundError):
            continue  # its directory is missing; the dispatcher ends it
    if ended:
        with service.database.writing() as session:
            for run_id, facts in ended.items():
                job = session.get(Job, run_id)
                if job is not None and job.state != "started":  # otherwise, its worker notices that the run has ended
                    end_run(session, run_id, facts, 1)
    return len(cancelled)


def retry_run(service: Service, caller: Caller, run_id: str, claim: Claim = UNCLAIMED) -> Answer:
    """Resume a run that did not fail because of its agent; otherwise create a new one with the same request.

    Args:
        service: The service.
        caller: The requesting user.
        run_id: A run visible to them.
        claim: For a request with an Idempotency-Key.

    Returns:
        202 with the run if it is resumed, otherwise 201 with the new one.

    Raises:
        Replayed: The request is a repeat.
        Problem: It has not ended, or its directory is damaged.
        MlereduxError: What it requests is no longer possible here.
    """
    with _RETRYING:
        return _retry(service, caller, run_id, claim)


def _retry(service: Service, caller: Caller, run_id: str, claim: Claim) -> Answer:
    with service.database.reading() as session:
        row, job = session.get_one(RunRow, run_id), session.get_one(Job, run_id)
    if job.state != "ended":
        raise Problem("conflict", f"Run {run_id} is {row.status}.", hint="Wait until it ends, or cancel it first.")
    own = row.user_id == caller.user_id and caller.bound_to is None
    how = KeptRequest.of(row.request, chosen_by_caller=own, project=row.project_id)
    try:
        run = run_at(service.store, run_id)
        with provide_secrets(secrets_of(service, row)):
            resumable = _is_resumable(service, run)
        if resumable:
            # Another member's secrets are never used: only the project's are, or the request is refused.
            with providing(service, caller, how.secrets, how.project, own=not how.project_secrets):
                check_source(service, caller, row.agent)
            return _queue_again(service, caller, run, claim, how)
    except NotFound:
        pass  # the directory is missing, but the database has the request
    except ValueError as error:
        raise Problem("conflict", f"Run {run_id} can't be read.", hint="Create a new run.") from error
    with providing(service, caller, how.secrets, how.project, own=not how.project_secrets):
        check_agent(service, caller, how.agent, how.options)
        planned, experiment = plan_run(service, how), None

    def answer(rows: list[RunRow]) -> Answer:
        return run_created(rows, caller)

    if row.experiment_id is not None and lacks_result(row.status, row.cause):
        with service.database.reading() as session:
            experiment = session.get(Experiment, row.experiment_id)
        planned = replace(planned, plan=planned.plan.model_copy(update={"arm": row.arm}))
    created = make_runs(
        service, caller, [planned], how, experiment=experiment, retry_of=run_id, claim=claim, answer=answer
    )
    with service.database.writing() as session:
        note(session, caller, "retry", f"{run_id} {created[0].id}")
    return answer(created)


def set_labels(session: Session, row: RunRow, changes: Mapping[str, str | None]) -> None:
    """Set labels of a run; a value of None removes the label.

    Raises:
        Problem: The run would have too many labels.
    """
    new = {name: value for name, value in changes.items() if value is not None}
    labels = {name: value for name, value in row.labels.items() if name not in changes} | new
    if len(labels) > MOST_LABELS:
        raise Problem("invalid", f"A run has at most {MOST_LABELS} labels.", hint="Remove one.")
    row.labels = labels
    session.execute(delete(RunLabel).where(RunLabel.run_id == row.id, RunLabel.name.in_(changes)))
    session.add_all(RunLabel(run_id=row.id, name=name, value=value) for name, value in new.items())


def delete_run(service: Service, caller: Caller | None, run_id: str) -> None:
    """Delete a run and all its files; a caller of None is the administrator.

    Raises:
        Problem: The run has not ended, or is pinned.
        OSError: Its directory can't be moved.
    """
    _check_deletable(service, run_id)
    path, trash = service.store.path / run_id, service.settings.state_dir / TRASH
    trash.mkdir(exist_ok=True)
    aside = trash / f"{run_id}-{secrets.token_hex(4)}"
    try:
        run = run_at(service.store, run_id)
        with run.lock.attempt() as acquired:
            if not acquired:
                raise Problem("conflict", f"Run {run_id} is running.", hint="Cancel it first, and wait until it ends.")
            _check_deletable(service, run_id)  # it may have been pinned or retried in the meantime
            _delete_objects(service, path)
            path.rename(aside)  # atomic: a kill leaves no partial directory
    except Problem:
        raise
    except (FileNotFoundError, MlereduxError):  # damaged, or not here: it can't be running
        _delete_objects(service, path)
        if path.exists():
            path.rename(aside)
    if service.stored_runs is not None:
        service.stored_runs.forget(run_id)
    forget_values(service, run_id)
    with service.database.writing() as session:
        session.execute(delete(RunRow).where(RunRow.id == run_id))
        forget_job(session, run_id, service.settings.half_life)
        note(session, caller, "delete", run_id)
    remove_tree(aside)


def _delete_objects(service: Service, path: Path) -> None:
    try:
        delete_replica(service.catalogue, path, service.settings.store)
    except StoreError as error:
        hint = "Nothing here was deleted: try again when the object store responds."
        raise Problem("unavailable", error.message, hint=hint) from error


def _check_deletable(service: Service, run_id: str) -> None:
    with service.database.reading() as session:
        row, job = session.get_one(RunRow, run_id), session.get_one(Job, run_id)
    if job.state != "ended":
        hint = "Cancel it first, and wait until it ends."
        raise Problem("conflict", f"Run {run_id} is {row.status}.", hint=hint)
    if row.pinned:
        raise Problem("conflict", f"Run {run_id} is pinned.", hint="Remove the pin first.")


def _is_resumable(service: Service, run: Run) -> bool:
    """Return whether the run ended for a reason other than its agent, and nothing has changed since."""
    if run.alive:
        raise Problem("conflict", f"Run {run.id} is running.", hint="Wait until it ends, or cancel it first.")
    state, cause = run.state, run.cause
    if not state.final:
        return True
    if state in (State.DONE, State.TIMED_OUT) or (cause is not None and CAUSES[cause].counts):
        return False
    try:
        check_resumable(run, service.catalogue, build=False)
    except ResumeRefused:
        return False
    return True


def _queue_again(service: Service, caller: Caller, run: Run, claim: Claim, how: KeptRequest) -> Answer:
    with service.database.reading() as session:
        project = session.get_one(Project, session.get_one(Job, run.id).project_id)
        most = Quota.model_validate(project.quota).queued_runs
        waiting = session.scalar(
            select(func.count()).where(Job.project_id == project.id, Job.kind == "run", Job.state == "queued")
        )
    if most is not None and (waiting or 0) >= most:
        raise Problem("quota-exceeded", f"The quota of project {project.name} allows {most} queued runs.")
    with run.lock.attempt() as acquired:
        if not acquired:
            raise Problem("conflict", f"Run {run.id} is running.", hint="Wait until it ends, or cancel it first.")
        run.forget_cancel()
        if run.state.final:
            run.enter(State.QUEUED)
        facts = facts_of(run)
    with service.database.writing() as session:
        claim.take(session)
        job = session.get_one(Job, run.id)
        if job.state == "ended":
            job.state, job.attempts, job.cancel, job.queued_at = "queued", 0, False, now()
            job.started_at = job.ended_at = None
            job.disk_mb = run.spec.limits.disk_mb
        write_row(session, run.id, facts)
        note(session, caller, "retry", run.id)
        session.flush()
        row = session.get_one(RunRow, run.id, populate_existing=True)
        row.request = {**row.request, "project_secrets": how.project_secrets}
        view = run_view(row, session.get_one(User, row.user_id), None)
        answer = Answer(202, {}, view.model_dump_json())
        claim.keep(session, answer)
    service.wake.set()
    return answer


def _foreign(service: Service, run_id: str) -> bool:
    """Return whether another program created the run, so that the scheduler does not manage it."""
    with service.database.reading() as session:
        return session.scalar(select(Job.state).where(Job.id == run_id)) == "ended"
