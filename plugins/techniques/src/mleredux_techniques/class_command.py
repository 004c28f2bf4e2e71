"""`mleredux techniques`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
from mleredux.plugin.command import CommandGroup, data_dir_option, json_option, print_json, print_table

_FORMATS = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"]


@click.group("techniques", cls=CommandGroup)
def command() -> None:
    """Teach with technique tasks."""


@command.command("class")
@click.argument("students", metavar="CLASS.csv", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--task", metavar="TASK", help="The technique task for all, e.g. leakage@wine; each gets planted data.")
@click.option(
    "--into",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default="class",
    show_default=True,
    help="Folder with one folder a student.",
)
@click.option(
    "--deadline",
    type=click.DateTime(_FORMATS),
    help="Until then only the form of submissions is checked, in this machine's time.",
)
@data_dir_option
@json_option
def run_class(
    students: Path, task: str | None, folder: Path, deadline: datetime | None, data_dir: str | None, as_json: bool
) -> None:
    """Hand out a technique task to a class, collect submissions, and grade them after the deadline.

    CLASS.csv has the column `student`, and optionally `seed` or `task`. Each call writes FOLDER/STUDENT/task where it
    is missing, and looks for the document that the task asks for in FOLDER/STUDENT. After the deadline, or without one,
    it grades, writes feedback.md beside each submission, and prints how many answered each question right.
    """
    from mleredux_techniques.classroom import collect, hand_out, questions, read_class

    found = read_class(students, task)
    for student in found:
        if hand_out(student, folder, data_dir):
            click.echo(f"{student.name}: wrote {folder / student.name / 'task'} ({student.task})", err=True)
    until = deadline.astimezone() if deadline else None
    rows = collect(found, folder, until, data_dir)
    asked = questions(rows)
    if as_json:
        print_json({"students": rows, "questions": asked})
        return
    print_table(rows, ("student", "status", "score", "task", "message"), ("task",))
    if asked:
        click.echo()
        print_table(
            [{**row, "right": f"{row['right']} of {row['answered']}"} for row in asked], ("question", "right", "mean")
        )
    elif until and until > datetime.now(UTC):
        click.echo(f"Graded after {until:%Y-%m-%d %H:%M %Z}.")
