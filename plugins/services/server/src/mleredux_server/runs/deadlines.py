"""Delayed feedback: only administrators see grades of a class's task before its deadline."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError
from mleredux.plugin.files import write_atomically
from sqlalchemy import select

from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import Submission, User
from mleredux_server.runs.lists import seen_by
from mleredux_server.runs.views import as_view
from mleredux_server.schemas.submissions import SubmissionView
from mleredux_server.service import Service

_FILE = "deadlines.json"
_RELEASED = datetime.max.replace(tzinfo=UTC)
"""Stands for "until an administrator releases the feedback"."""
_MOST = 5_000
_writing = threading.Lock()


def plain(task: str) -> str:
    """Return a task without its variant: a deadline applies to all variants, since each student has a different one."""
    return re.sub(r"\+[^@]*", "", task)


def deadline_of(service: Service, task: str) -> datetime | None:
    """Return the deadline of a task, even if it has passed; None: it has none."""
    until = _kept(service).get(plain(task))
    return None if until is None else datetime.fromisoformat(until)


def set_deadline(service: Service, task: str, until: str | None) -> str:
    """Hold back feedback on a task until a time or, if it is empty, until it is released; None releases it now.

    Returns:
        A sentence on when the feedback is shown.

    Raises:
        MlereduxError: The time is not valid.
    """
    try:
        end = datetime.now(UTC) if until is None else datetime.fromisoformat(until).astimezone() if until else _RELEASED
    except ValueError:
        raise MlereduxError(f"{until!r} is not a valid time.", hint="Write it as 2026-06-30T18:00.") from None
    with _writing:
        kept = {**_kept(service), plain(task): end.isoformat()}
        write_atomically(service.settings.state_dir / _FILE, json.dumps(kept, indent=1) + "\n")
    return shown_when(end)


def shown_when(end: datetime) -> str:
    """Return a sentence on when feedback is shown."""
    if end <= datetime.now(UTC):
        return "Feedback is shown."
    return f"Feedback is shown {'when it is released' if end == _RELEASED else f'after {end:%Y-%m-%d %H:%M %Z}'}."


def submission_view(service: Service, caller: Caller, row: Submission, user: str) -> SubmissionView:
    """Return a submission's view for a caller, without its grade before the deadline of its task."""
    view = as_view(SubmissionView, row, user=user)
    end = deadline_of(service, row.task)
    if end is None or caller.all_projects or end <= datetime.now(UTC):
        return view
    return view.model_copy(update={"report": None, "message": f"It is submitted. {shown_when(end)}"})


def submitted(service: Service, caller: Caller) -> list[dict[str, Any]]:
    """Return each person's last submission to each technique task; submissions before its deadline take precedence."""
    where = (Submission.task.contains("@"), *seen_by(caller, Submission.project_id))
    query = select(Submission, User.name).join(User, User.id == Submission.user_id).where(*where)
    with service.database.reading() as session:
        rows = session.execute(query.order_by(Submission.created_at.desc(), Submission.id.desc()).limit(_MOST)).all()
    found: dict[tuple[str, str], dict[str, Any]] = {}
    ends = {task: deadline_of(service, task) for task in {row.task for row, _ in rows}}
    for row, user in rows:
        end, known = ends[row.task], found.get((user, row.task))
        late = end is not None and row.created_at > end
        if known is None or (known["status"] == "late" and not late):
            view = submission_view(service, caller, row, user)
            found[user, row.task] = _line(view) | {"class": end is not None} | ({"status": "late"} if late else {})
    return sorted(found.values(), key=lambda one: (plain(one["task"]), one["student"]))


def _line(view: SubmissionView) -> dict[str, Any]:
    parts: Iterable[Any] = view.report.details.get("facts", {}).get("parts", []) if view.report else []
    return {
        "student": view.user,
        "task": view.task,
        "status": view.status,
        "score": view.report.score if view.report else None,
        "message": view.message or (view.report.message if view.report else None),
        "questions": [{name: part[name] for name in ("name", "score", "weight")} for part in parts],
    }


def _kept(service: Service) -> dict[str, str]:
    path = service.settings.state_dir / _FILE
    try:
        status = path.stat()
        return _read(path, status.st_ino, status.st_mtime_ns)
    except FileNotFoundError:
        return {}


@lru_cache(maxsize=4)
def _read(path: Path, *_changed: int) -> dict[str, str]:
    """Read the deadlines, cached for the thousands of submissions of a class: each change writes a new file."""
    kept: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return kept
