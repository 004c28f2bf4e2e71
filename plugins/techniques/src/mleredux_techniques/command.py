"""`mleredux findings`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from mleredux.models.formats import counted
from mleredux.plugin.command import json_option, print_json, runs_dir_option


@click.command("findings")
@click.argument("task")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Output file; a folder, or a path without suffix, becomes an Agent Skill.  [default: standard output]",
)
@click.option(
    "--top", "most", type=click.IntRange(min=1), default=3, show_default=True, help="Recommendations per technique."
)
@click.option(
    "--form",
    type=click.Choice(["graded", "unfiltered", "sham", "checklist"]),
    default="graded",
    show_default=True,
    help="Graded findings, or text of the same length to compare them with.",
)
@click.option("--other", "others", multiple=True, metavar="TASK", help="A task whose findings the sham uses.")
@runs_dir_option
@json_option
def command(
    task: str, output: Path | None, most: int, form: str, others: tuple[str, ...], runs_dir: str | None, as_json: bool
) -> None:
    """Collect the findings of technique runs on TASK, best first: as Markdown for `mleredux run --context`, or as an
    Agent Skill for `mleredux run --tool`.
    """
    from mleredux.plugin.artifact import RunStore
    from mleredux.plugin.files import write_atomically

    from mleredux_techniques.curriculum import collect, text

    if (form == "sham") != bool(others):
        raise click.UsageError("A sham uses findings about other tasks: combine --form sham with --other TASK.")
    store = RunStore(runs_dir)
    lessons = collect(store, task, most=most)
    written, files = text(task, lessons), 1
    if form != "graded":
        from mleredux_techniques.findings.contexts import contexts

        known = {task: lessons, **{other: collect(store, other, most=most) for other in others}}
        written = contexts(task, known, collect(store, task, most=most, graded=False))[form]
    if output is not None and (output.is_dir() or not output.suffix):
        from mleredux_techniques.findings.skill import write_skill

        if form != "graded":
            raise click.UsageError("A skill has graded findings; set --output to a file for another form.")
        files = len(write_skill(task, lessons, output))
    elif output is not None:
        write_atomically(output, written)
    if as_json:
        print_json({"task": task, "lessons": [asdict(lesson) for lesson in lessons]})
    elif output is None:
        click.echo(written, nl=False)
    else:
        runs = sum(len(lesson.runs) for lesson in lessons)
        suffix = "" if files == 1 else f" in {files} files"
        click.echo(f"{output}: findings of {counted(runs, 'run')} of {counted(len(lessons), 'technique')}{suffix}.")
