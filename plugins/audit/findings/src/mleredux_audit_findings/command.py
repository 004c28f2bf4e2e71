"""`mleredux experiment findings`."""

from __future__ import annotations

from pathlib import Path

import click
from mleredux.plugin.command import data_dir_option, json_option, print_json, runs_dir_option


@click.command("findings")
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Also write the page to this file."
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Maximum number of concurrent runs."
)
@runs_dir_option
@data_dir_option
@json_option
def command(
    plan: Path, output: Path | None, jobs: int, runs_dir: str | None, data_dir: str | None, as_json: bool
) -> None:
    """Measure whether findings help an agent, the single arm of PLAN, compared with no text and with other texts.

    Runs the technique tasks of each task, writes the contexts, and runs the agent with each context. Runs that have a
    result are not repeated. The page names the tasks on which a context makes results worse.
    """
    from mleredux.plugin.files import write_atomically

    from mleredux_audit_findings.report import page, record
    from mleredux_audit_findings.study import Study

    study = Study(plan, runs_dir, data_dir, say=lambda message: click.echo(message, err=True))
    known = record(study, study.run(jobs).analyse())
    written = page(study, known)
    for path in (study.folder / "findings.md", output):
        if path is not None:
            write_atomically(path, written)
    if as_json:
        print_json(known)
    else:
        click.echo(written, nl=False)
