"""Grade submissions without an agent, using core's grader in a child process without network."""

from __future__ import annotations

import csv
import hashlib
import hmac
import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mleredux.errors import DataError, MlereduxError, TaskBroken
from mleredux.plugin.artifact import Report
from mleredux.plugin.files import write_atomically
from mleredux.plugin.host import Prepared, grade, prepare
from mleredux.plugin.task import Task

from mleredux_server.database.tables import Submission
from mleredux_server.work import WorkContext

TABLE, BUSY, FAILED = Submission, "grading", "It could not be graded."
FAULT_FILE = "fault.txt"
"""File with the error message for the server administrator, since it may name files on this machine."""


def work(context: WorkContext) -> dict[str, Any]:
    """Prepare the task if necessary, and grade the file.

    Returns:
        `report`, even for a file that can't be scored.

    Raises:
        MlereduxError: The server or the task is at fault.
    """
    job_request = context.request
    try:
        task = context.catalogue.task(str(job_request["task"]))
        prepared = prepare(task, context.catalogue, context.data)
        report = grade(
            task,
            context.folder / str(job_request["file"]),
            prepared.private,
            context.catalogue,
            shown_path=task.submission.file,
            cancelled=context.cancelled,
        )
        document = json.loads(report.model_dump_json())
        if job_request.get("halves") and report.valid_submission:
            with suppress(TaskBroken, KeyError):  # the task can't be graded by halves
                document["details"]["halves"] = halves(context, task, prepared, report)
    except (DataError, TaskBroken) as error:
        write_atomically(context.folder / FAULT_FILE, f"{error}\n")
        what = "has no data on this server" if isinstance(error, DataError) else "is broken"
        raise MlereduxError(
            f"The submission could not be graded: the task {job_request['task']} {what}.",
            hint="Contact the server administrator.",
        ) from error
    return {"report": document}


def halves(context: WorkContext, task: Task, prepared: Prepared, report: Report) -> dict[str, float | None]:
    """Return the public and the private score for a class, each on every second question or half of the test rows."""
    parts = [part for part in report.details.get("facts", {}).get("parts", []) if part["weight"] > 0]
    if parts:
        return {name: _mean(parts[first::2]) for name, first in (("public", 1), ("private", 0))}
    submission, answers = context.folder / str(context.request["file"]), prepared.private / task.answers
    columns = task.submission.id_columns
    if not columns or answers.suffix != ".csv":
        return {}
    key, scores = hashlib.sha256(answers.read_bytes()).digest(), dict[str, float | None]()  # secret, as the answers are
    others = shutil.ignore_patterns("public", ".writing-*")
    for number, name in enumerate(("private", "public")):
        with TemporaryDirectory(dir=context.folder) as place:
            part, where = Path(place, submission.name), Path(place, "private")
            shutil.copytree(prepared.private.parent, place, ignore=others, dirs_exist_ok=True)
            _choose(submission, part, columns, key, number)
            _choose(answers, where / answers.name, columns, key, number)
            scores[name] = grade(task, part, where, context.catalogue, cancelled=context.cancelled).score
    return scores


def _mean(parts: list[dict[str, Any]]) -> float | None:
    weight = sum(part["weight"] for part in parts)
    return sum(part["score"] * part["weight"] for part in parts) / weight if weight else None


def _choose(source: Path, target: Path, columns: Sequence[str], key: bytes, number: int) -> None:
    """Copy the rows of a table that belong to a half by a keyed hash of their ids."""
    with source.open(newline="", encoding="utf-8-sig") as rows, target.open("w", newline="", encoding="utf-8") as file:
        csv.field_size_limit(1 << 30)
        reader = csv.DictReader(rows)
        writer = csv.DictWriter(file, reader.fieldnames or (), extrasaction="ignore")
        writer.writeheader()
        for row in reader:
            identity = "\n".join(_plain(row[name]) for name in columns)
            if hmac.digest(key, identity.encode(), "sha256")[0] % 2 == number:
                writer.writerow(row)


def _plain(value: str) -> str:
    """Return the same text for each way in which a number may be written."""
    with suppress(ValueError):
        return repr(float(value))
    return value


def settle(row: Submission, result: dict[str, Any]) -> None:
    """Record the grade."""
    row.status, row.report = "done", result["report"]
    row.message = result["report"].get("message")
