"""Grade submissions without an agent, using core's grader in a child process without network."""

from __future__ import annotations

import json
from typing import Any

from mleredux.errors import DataError, MlereduxError, TaskBroken
from mleredux.plugin.files import write_atomically
from mleredux.plugin.host import grade, prepare

from mleredux_server.database.tables import Submission
from mleredux_server.work import WorkContext

TABLE, BUSY, FAILED = Submission, "grading", "It could not be graded."
FAULT_FILE = "fault.txt"
"""File with the error message for the server administrator, since it may name files of this machine."""


def work(context: WorkContext) -> dict[str, Any]:
    """Prepare the task if necessary, and grade the file.

    Returns:
        `report`, even for a file that can't be scored.

    Raises:
        MlereduxError: The server or the task is at fault.
    """
    asked = context.request
    try:
        task = context.catalogue.task(str(asked["task"]))
        prepared = prepare(task, context.catalogue, context.data)
        report = grade(
            task,
            context.folder / str(asked["file"]),
            prepared.private,
            context.catalogue,
            shown_path=task.submission.file,
            cancelled=context.cancelled,
        )
    except (DataError, TaskBroken) as error:
        write_atomically(context.folder / FAULT_FILE, f"{error}\n")
        what = "has no data on this server" if isinstance(error, DataError) else "is broken"
        raise MlereduxError(
            f"The submission could not be graded: the task {asked['task']} {what}.",
            hint="Contact the server administrator.",
        ) from error
    return {"report": json.loads(report.model_dump_json())}


def settle(row: Submission, result: dict[str, Any]) -> None:
    """Record the grade."""
    row.status, row.report = "done", result["report"]
    row.message = result["report"].get("message")
