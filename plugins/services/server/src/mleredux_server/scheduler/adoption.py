"""Adopt runs that have a directory but no row: created by the command line, or before the database was lost.

Runs created by the service contain a record of their request, and are resumed where they stopped. Runs without one
belong to another program: they are listed and followed, and started only if a user retries them.
"""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import Any

from mleredux.plugin.artifact import Run
from mleredux.plugin.experiment import RunPlan
from pydantic import BaseModel, ValidationError

from mleredux_server.runs.summary import Facts
from mleredux_server.schemas.runs import KeptRequest, Label, LimitsAsked, RunRequest

NOTE_FILE = ".service.json"
_ALIKE = ("task", "agent", "sandbox", "seed", "network", "obfuscated", "options")


class Note(BaseModel):
    """The request data that the service stores in a run's directory, in case the database is lost."""

    request: KeptRequest
    labels: dict[Label, Label] = {}
    retry_of: str | None = None


def write_note(run: Run, request: RunRequest, retry_of: str | None) -> None:
    """Record the request.

    Raises:
        OSError: The disk is full.
    """
    note = Note(request=KeptRequest.model_construct(**dict(request)), labels=request.labels, retry_of=retry_of)
    (run.path / NOTE_FILE).write_text(note.model_dump_json(), encoding="utf-8")


def adopted(run: Run, facts: Facts, user_id: str, project_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of a job and of a run's row, for a run that has neither.

    Raises:
        ValueError: Its request is invalid.
    """
    spec, note = run.spec, _note(run)
    looked_after = note is not None and not facts.state.final
    state = "ended" if not looked_after else "started" if run.alive else "queued"
    request = note.request if note else _request(run)
    job, row = columns_of(spec, run.id, request, spec.created_at, project_id, user_id)
    job |= {
        "state": state,
        "disk_mb": 0 if state == "ended" else spec.limits.disk_mb,
        "llm_tokens_counted": facts.llm_tokens if facts.state.final else 0,
        "queued_at": spec.created_at,
        "started_at": facts.started_at,
        "ended_at": facts.ended_at,
    }
    row |= {
        "retry_of": note.retry_of if note else None,
        "request": {**row["request"], "project_secrets": True},  # the new owner did not request it
        **facts.columns(),
        **({"status": "queued"} if state == "queued" else {}),
        "updated_at": facts.changed_at or spec.created_at,
    }
    return job, row


def columns_of(
    plan: RunPlan, run_id: str, request: RunRequest, created_at: datetime, project_id: str, user_id: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of the job and of the row of a run that was not started yet.

    Args:
        plan: The run's plan.
        run_id: Id of the run.
        request: Its request.
        created_at: When it was created.
        project_id: Id of its project.
        user_id: Id of its user.
    """
    owner = {"id": run_id, "project_id": project_id, "user_id": user_id, "created_at": created_at}
    same = {**owner, **request.model_dump(include={"priority", "preemptible"})}
    demand = plan.limits.model_dump(include={"cpus", "memory_mb", "gpus", "disk_mb"})
    tokens = plan.limits.llm_tokens if plan.network == "gateway" else None
    row = {
        **same,
        **plan.model_dump(include={"arm", *_ALIKE}),
        "limits": plan.limits.model_dump(mode="json"),
        "labels": request.labels,
        "request": request.model_dump(mode="json"),
        "updated_at": created_at,
    }
    return {**same, "kind": "run", **demand, "llm_tokens": tokens}, row


def _note(run: Run) -> Note | None:
    with contextlib.suppress(OSError, ValidationError):
        return Note.model_validate_json((run.path / NOTE_FILE).read_bytes())
    return None


def _request(run: Run) -> RunRequest:
    """Return the equivalent request to the service, for a run that another program created."""
    spec = run.spec
    limits = {key: value for key, value in spec.limits.model_dump().items() if key in LimitsAsked.model_fields}
    same = spec.model_dump(include={"verify", "context", *_ALIKE})
    return RunRequest(**same, limits=LimitsAsked.model_validate(limits))
