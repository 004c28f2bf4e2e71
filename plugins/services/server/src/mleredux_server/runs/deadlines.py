"""Terms of a class for a task: the deadline of its feedback, its public score, and its submissions per day."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from mleredux.errors import MlereduxError
from mleredux.plugin.files import write_atomically
from mleredux_http_api import SubmissionView
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import Submission, User, now
from mleredux_server.runs.lists import visible_to
from mleredux_server.runs.views import as_view
from mleredux_server.service import Service

_FILE = "deadlines.json"
_RELEASED = datetime.max.replace(tzinfo=UTC)
"""Stands for "until an administrator releases the feedback"."""
_MOST = 5_000
_writing = threading.Lock()


def plain(task: str) -> str:
    """Return a task without its variant: a deadline applies to all variants, since each student has a different one."""
    return re.sub(r"\+[^@]*", "", task)


class Terms(NamedTuple):
    """The terms of a class for a task and all its variants.

    Attributes:
        until: When feedback is shown.
        public: Whether half of the answers give a public score until then, and the other half the score of the board.
        daily: The maximum number of submissions of each student per day, in UTC; None: no limit.
    """

    until: datetime
    public: bool = False
    daily: int | None = None

    @property
    def over(self) -> bool:
        """Return whether feedback is shown."""
        return self.until <= datetime.now(UTC)


def terms_of(service: Service, task: str) -> Terms | None:
    """Return the terms of a task, even if its deadline has passed; None: it has none."""
    kept = _kept(service).get(plain(task))
    if kept is None:
        return None
    until, *others = [kept] if isinstance(kept, str) else kept
    return Terms(datetime.fromisoformat(until), *others)


def set_terms(service: Service, task: str, until: str | None, *, public: bool = False, daily: str = "") -> str:
    """Hold back feedback on a task until a time or, if it is empty, until it is released; None releases it now.

    Returns:
        A sentence about when the feedback is shown.

    Raises:
        MlereduxError: The time or the number of submissions is not valid.
    """
    try:
        end = datetime.now(UTC) if until is None else datetime.fromisoformat(until).astimezone() if until else _RELEASED
    except ValueError:
        raise MlereduxError(f"{until!r} is not a valid time.", hint="Write it as 2026-06-30T18:00.") from None
    if not re.fullmatch("([1-9][0-9]{0,4})?", daily):
        raise MlereduxError(f"{daily!r} is not a number of submissions.", hint="Write a number from 1 to 99999.")
    before = terms_of(service, task) if until is None else None  # a release changes nothing else
    terms = before._replace(until=end) if before else Terms(end, public, int(daily) if daily else None)
    with _writing:
        kept = {**_kept(service), plain(task): [end.isoformat(), terms.public, terms.daily]}
        write_atomically(service.settings.state_dir / _FILE, json.dumps(kept, indent=1) + "\n")
    return shown_when(end)


def left_today(session: Session, terms: Terms | None, task: str, user_id: str) -> int | None:
    """Return the number of a user's further submissions that count today, to all variants of a task; None: no limit.

    Those that could not be graded because of the server or the task do not count.
    """
    if terms is None or terms.daily is None or terms.over:
        return None
    today = now().replace(hour=0, minute=0, second=0, microsecond=0)
    own = (Submission.user_id == user_id, Submission.created_at >= today, Submission.status != "failed")
    used = sum(plain(name) == plain(task) for name in session.scalars(select(Submission.task).where(*own)))
    return max(0, terms.daily - used)


def shown_when(end: datetime) -> str:
    """Return a sentence about when feedback is shown."""
    if end <= datetime.now(UTC):
        return "Feedback is shown."
    return f"Feedback is shown {'when it is released' if end == _RELEASED else f'after {end:%Y-%m-%d %H:%M %Z}'}."


def submission_view(service: Service, caller: Caller, row: Submission, user: str) -> SubmissionView:
    """Return a submission's view for a caller; before the deadline of its task only with its public score."""
    view, terms = as_view(SubmissionView, row, user=user), terms_of(service, row.task)
    if terms is None or caller.all_projects or terms.over:
        return view
    score = _half(row, terms)
    public = "" if score is None else f" Its public score, on half of the answers, is {score:.5f}."
    return view.model_copy(update={"report": None, "message": f"It is submitted.{public} {shown_when(terms.until)}"})


def _half(row: Submission, terms: Terms) -> float | None:
    """Return the public score before the deadline, and the private one after it, if the class has them."""
    halves = (row.report or {}).get("details", {}).get("halves") if terms.public else None
    score: float | None = (halves or {}).get("private" if terms.over else "public")
    return score


def submitted(service: Service, caller: Caller) -> list[dict[str, Any]]:
    """Return each person's last submission to each technique task, and to each task of a class; submissions before the
    deadline take precedence.
    """
    classes = or_(Submission.task.contains("@"), Submission.task.in_(list(_kept(service))))
    query = select(Submission, User.name).join(User, User.id == Submission.user_id)
    query = query.where(classes, *visible_to(caller, Submission.project_id))
    with service.database.reading() as session:
        rows = session.execute(query.order_by(Submission.created_at.desc(), Submission.id.desc()).limit(_MOST)).all()
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    each = {task: terms_of(service, task) for task in {row.task for row, _ in rows}}
    for row, user in rows:
        terms, known = each[row.task], lines.get((user, row.task))
        late = terms is not None and row.created_at > terms.until
        if known is None or (known["status"] == "late" and not late):
            line = _line(submission_view(service, caller, row, user)) | {"class": terms is not None}
            line |= {"score": _half(row, terms)} if terms and terms.public else {}
            lines[user, row.task] = line | ({"status": "late"} if late else {})
    return sorted(lines.values(), key=lambda entry: (plain(entry["task"]), entry["student"]))


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


def _kept(service: Service) -> dict[str, Any]:
    path = service.settings.state_dir / _FILE
    try:
        status = path.stat()
        return _read(path, status.st_ino, status.st_mtime_ns)
    except FileNotFoundError:
        return {}


@lru_cache(maxsize=4)
def _read(path: Path, *_changed: int) -> dict[str, Any]:
    """Read the deadlines, cached for the thousands of submissions of a class: each change writes a new file."""
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return kept
