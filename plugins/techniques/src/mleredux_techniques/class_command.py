"""`mleredux classroom`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click
from mleredux.plugin.command import data_dir_option, json_option, print_json, print_table, runs_dir_option


@click.command("classroom")
@click.argument("students", metavar="CLASS.csv", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--task", metavar="TASK", help="Technique task to plant for each student, e.g. leakage@wine.")
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default="class",
    show_default=True,
    help="Folder with one folder per student.",
)
@click.option(
    "--deadline",
    metavar="TIME",
    help="Only check the format of submissions until this time, such as 2026-06-30T18:00; `now` grades at once.",
)
@click.option("--public", is_flag=True, help="Score every second question before the deadline, the others after it.")
@runs_dir_option
@data_dir_option
@json_option
def command(
    students: Path,
    task: str | None,
    folder: Path,
    deadline: str | None,
    public: bool,
    runs_dir: str | None,
    data_dir: str | None,
    as_json: bool,
) -> None:
    """Hand out a technique task to a class, collect submissions, and grade them after the deadline.

    CLASS.csv has the column `student`, and optionally `seed`, `task` or `deadline`. Each call writes
    FOLDER/STUDENT/task if it is missing, and collects the task's document from FOLDER/STUDENT and from runs of
    `mleredux human start --name STUDENT`. After the deadline, or without one, it grades, writes feedback.md into each
    student's folder, and prints the number of correct answers to each question. FOLDER stores --task, --deadline and
    --public for later calls.
    """
    from mleredux.plugin.artifact import RunStore

    from mleredux_techniques.classroom import Terms, collect, next_handout, questions, read_class

    until = datetime.now().astimezone().isoformat() if deadline == "now" else deadline
    terms = Terms(task, until, public).kept(folder)
    roll = read_class(students, terms)
    terms.keep(folder)
    for place, listed in enumerate(roll):
        student, written = next_handout(listed, terms, folder, data_dir)
        roll[place] = student
        if written:
            click.echo(f"{student.name}: wrote {folder / student.name / 'task'} ({student.task})", err=True)
    rows = collect(roll, folder, RunStore(runs_dir), data_dir, public=terms.public)
    totals = questions(rows)
    if as_json:
        print_json({"students": rows, "questions": totals})
        return
    print_table(rows, ("student", "status", "score", "task", "message"), ("task",))
    if totals:
        click.echo()
        shown = [{**row, "right": f"{row['right']} of {row['answered']}"} for row in totals]
        print_table(shown, ("question", "right", "mean"))
    if waiting := [student.deadline for student in roll if student.deadline and not student.over]:
        click.echo(f"{len(waiting)} of {len(roll)} are graded later, the last after {max(waiting):%Y-%m-%d %H:%M %Z}.")
