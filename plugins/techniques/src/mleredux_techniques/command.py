"""`mleredux findings`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from mleredux.plugin.command import json_option, print_json, runs_dir_option


@click.command("findings")
@click.argument("task")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Output file.  [default: standard output]"
)
@click.option(
    "--top",
    "most",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Recommendations per technique.",
)
@runs_dir_option
@json_option
def command(task: str, output: Path | None, most: int, runs_dir: str | None, as_json: bool) -> None:
    """Collect the findings of technique runs on TASK, best first, as Markdown for `mleredux run --context`."""
    from mleredux.plugin.artifact import RunStore
    from mleredux.plugin.files import write_atomically

    from mleredux_techniques.curriculum import collect, text

    lessons = collect(RunStore(runs_dir), task, most=most)
    written = text(task, lessons)
    if output is not None:
        write_atomically(output, written)
    if as_json:
        print_json({"task": task, "lessons": [asdict(lesson) for lesson in lessons]})
    elif output is None:
        click.echo(written, nl=False)
    else:
        runs = sum(len(lesson.runs) for lesson in lessons)
        click.echo(f"{output}: findings of {runs} runs of {len(lessons)} techniques.")
