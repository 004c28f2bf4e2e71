"""The answers of a task in the form of a submission, and the agent that submits them."""

from __future__ import annotations

from pathlib import Path

from mleredux._core.data import DataStore, Prepared
from mleredux._core.plugins import current
from mleredux._core.protocols import Launch
from mleredux._core.store import Run
from mleredux._core.submissions.schema import read_schema
from mleredux.models import Agent, Cause, Limits, Outcome, Task

from mleredux_testing.malformed import read_csv, write_csv


def submit_answers(launch: Launch) -> Outcome:
    """Write the submission of the agent `oracle` outside any sandbox; no agent process is started."""
    run = Run(launch.output_dir.parent)
    task = current().task(run.spec.task)
    prepared = DataStore(run.spec.data_dir).find(task)
    path = launch.output_dir / task.submission.file
    if prepared is None or answers_as_submission(task, prepared, path) is None:
        why = f"The answers of {task.id} do not have the columns of a submission, so they can't be submitted."
        return Outcome(exit_code=1, cause=Cause.AGENT_CRASHED, message=why)
    launch.log.write_text(f"The answers of {task.id} were submitted.\n", encoding="utf-8")
    return Outcome(exit_code=0)


oracle = Agent(
    id="oracle",
    title="Submits the answers of a task under development, so that its author sees the best possible score",
    command=("false",),
    limits=Limits(time_limit=300, cpus=1, memory_mb=512),
    tags=("no-llm",),
    needs=("answers",),
    outside=submit_answers,
)


def answers_as_submission(task: Task, prepared: Prepared, path: Path) -> Path | None:
    """Write the answers in the form of a submission, and return the path; None if they do not have its columns."""
    answers, schema = prepared.private / task.answers, read_schema(prepared.schema)
    if answers.suffix != ".csv" or not answers.is_file() or not schema.columns:
        return None
    header, rows = read_csv(answers)
    names = [column.name for column in schema.columns]
    if not set(names) <= set(header):
        return None
    places = [header.index(name) for name in names]
    return write_csv(path, (names, [[row[place] for place in places] for row in rows]))
