"""Pages for people who submit predictions: the form on a task's page, and the page of a submission with its grade."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from mleredux.errors import MlereduxError
from mleredux.plugin.task import Task
from mleredux_view.shared import Visit
from sqlalchemy import select

from mleredux_server.database.tables import Submission, User
from mleredux_server.runs.deadlines import left_today, set_terms, shown_when, submission_view, terms_of
from mleredux_server.runs.lists import visible_to
from mleredux_server.runs.lookup import find
from mleredux_server.runs.submissions import is_prepared
from mleredux_server.web.source import ServerSource

_SHOWN = 50


def on_task(visit: Visit, task: Task) -> dict[str, Any]:
    """Return the form, and the newest submissions to the task that the visitor may see."""
    source = cast("ServerSource", visit.source)
    caller, service = source.caller, source.service
    terms = terms_of(service, task.id)
    where = (Submission.task == task.id, *visible_to(caller, Submission.project_id))
    query = select(Submission, User.name).join(User, User.id == Submission.user_id).where(*where)
    with service.database.reading() as session:
        rows = session.execute(query.order_by(Submission.created_at.desc(), Submission.id.desc()).limit(_SHOWN)).all()
        left = left_today(session, terms, task.id, caller.user_id)
    views = [submission_view(service, caller, row, name) for row, name in rows]
    context: dict[str, Any] = {"teacher": caller.all_projects, "shown": shown_when(terms.until) if terms else ""}
    context |= {"left": left, "daily": terms.daily if terms else None}
    context["zone"] = datetime.now().astimezone().strftime("%Z")
    return {**context, "submissions": views, "may": caller.may("grade"), "prepared": is_prepared(service, task)}


def hold_back(visit: Visit) -> str:
    """Hold back the feedback on a task, or release it; return the URL of the task's page.

    Raises:
        MlereduxError: The visitor is not an administrator, or the time is not valid.
    """
    source = cast("ServerSource", visit.source)
    if not source.caller.all_projects:
        raise MlereduxError("Only administrators can delay feedback.", hint="Sign in as an administrator.")
    fields = {name: (visit.form.get(name) or [""])[-1] for name in ("task", "until", "what", "public", "daily")}
    task = source.service.catalogue.task(fields["task"]).id
    until = None if fields["what"] == "release" else fields["until"]
    visit.say(set_terms(source.service, task, until, public=bool(fields["public"]), daily=fields["daily"]))
    return visit.link("tasks", task)


def submission(visit: Visit) -> dict[str, Any]:
    """Return a submission, with its report once it is graded.

    Raises:
        NotFound: The visitor can see no such submission.
    """
    source = cast("ServerSource", visit.source)
    row, name = find(source.service, source.caller, Submission, visit.parts["submission_id"])
    view = submission_view(source.service, source.caller, row, name)
    parts = view.report.details.get("facts", {}).get("parts", []) if view.report else []
    return {"one": view, "parts": parts, "final": view.status in ("done", "failed")}
