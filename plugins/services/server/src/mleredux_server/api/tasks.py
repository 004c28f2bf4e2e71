"""`/v1/tasks`: the tasks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from mleredux.plugin.host import is_prepared, list_records, task_record
from mleredux_http_api import TaskView

from mleredux_server.accounts.security import Reader
from mleredux_server.schemas.pages import Page, Pages
from mleredux_server.schemas.tasks import TaskDetail
from mleredux_server.service import Current

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])

Word = Annotated[str | None, Query(max_length=512)]


@router.get("")
def list_tasks(
    _caller: Reader,
    service: Current,
    paging: Pages,
    sets: Annotated[list[str] | None, Query(alias="set", max_length=20, description="Only tasks of this set.")] = None,
    category: Word = None,
    technique: Annotated[
        str | None, Query(max_length=512, description="Tasks that this technique derives from other tasks.")
    ] = None,
    q: Annotated[str | None, Query(max_length=512, description="Text in the id or the title.")] = None,
) -> Page[TaskView]:
    """List installed tasks, in order of their ids."""
    rows = list_records(service.catalogue, "tasks", sets=sets or (), category=category, technique=technique)
    if q:
        wanted = q.casefold()
        rows = [row for row in rows if wanted in row["id"].casefold() or wanted in str(row.get("title")).casefold()]
    data = service.data.path
    return paging.page_of_all(
        rows, lambda row: str(row["id"]), lambda row: TaskView(**row, prepared=is_prepared(data, row["id"]))
    )


@router.get("/{task_id}")
def get_task(task_id: str, _caller: Reader, service: Current, obfuscated: bool = False) -> TaskDetail:
    """Get a task with its description; technique tasks (`cv@digits`) and variants (`spaceship-titanic+fixed`) are tasks
    too."""
    task = service.catalogue.task(task_id)
    record = task_record(task, obfuscated=obfuscated)
    home = service.catalogue.entries("tasks").get(task_id.rpartition("@")[2].partition("+")[0])
    return TaskDetail(
        **record,
        plugin=home.plugin.name if home is not None else None,
        prepared=is_prepared(service.data.path, task.id),
    )
