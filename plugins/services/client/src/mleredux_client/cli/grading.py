"""`mleredux grade` and `mleredux validate` on a server: predictions without an agent."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from mleredux._core.cli import grade as local_grade
from mleredux._core.cli import validate as local_validate
from mleredux.plugin.command import print_json

from mleredux_client.calls import segment, upload
from mleredux_client.cli.service import Service, service
from mleredux_client.cli.twins import twin

if TYPE_CHECKING:
    from mleredux.plugin.artifact import Report

_AT_ONCE = 4
_PROJECT = click.option("--project", metavar="NAME", help="The project whose quota it counts to.")


@twin("grade", local_grade.command, _PROJECT)
def grade(
    ctx: click.Context,
    submission: Path | None,
    task: str | None,
    jsonl: Path | None,
    output_dir: Path | None,
    project: str | None,
    as_json: bool,
) -> None:
    """Score a file against answers that the server has."""
    if jsonl is not None:
        if submission is not None:
            raise click.UsageError("Give either SUBMISSION and TASK, or --jsonl.")
        from mleredux.plugin.host import aggregate, read_listed, write_report

        lines, there = read_listed(jsonl), service(ctx)
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            reports = list(
                pool.map(lambda line: graded(there, line.submission_path, line.competition_id, project), lines)
            )
        total = aggregate(reports)
        path = write_report(total, output_dir) if output_dir is not None else None
        local_grade.print_aggregated(total, path, as_json=as_json)
        return
    if submission is None or task is None:
        raise click.UsageError("Name a submission file and its task, like `mleredux grade submission.csv digits`.")
    local_grade.print_report(graded(service(ctx), submission, task, project), as_json=as_json)


@twin("validate", local_validate.command)
def validate(ctx: click.Context, submission: Path, task: str, as_json: bool) -> None:
    """Look at a file's form."""
    there = service(ctx)
    if problem := unreadable(submission):
        facts = there.get(f"/v1/tasks/{segment(task)}")
        verdict = {"valid": False, "message": f"{facts['submission']['file']} {problem}."}
    else:
        call = upload("/v1/validations", submission, {"task": task}, creates=False)
        told = there.json(call)
        verdict = {"valid": told["valid"], "message": told["message"]}
    if as_json:
        print_json(verdict)
    else:
        click.echo(verdict["message"])
    ctx.exit(0 if verdict["valid"] else 1)


def graded(there: Service, submission: Path | str | None, task: str, project: str | None) -> Report:
    """The server's report of a file, or ours of one that can't be sent; `submission_path` is as it was given."""
    from mleredux.plugin.artifact import Report

    problem = unreadable(Path(submission)) if submission else "does not exist"
    if problem:
        return _not_sent(there.get(f"/v1/tasks/{segment(task)}"), str(submission or ""), problem)
    document = there.graded(Path(str(submission)), task, project)
    return Report.model_validate({**document, "submission_path": str(submission)}, extra="ignore")


def unreadable(path: Path) -> str | None:
    """Why a file can't be sent, as the end of a sentence; None where it can."""
    from mleredux.plugin.files import open_regular

    try:
        open_regular(path).close()
    except OSError as error:
        return str(error)
    return None


def _not_sent(facts: dict[str, Any], path: str, problem: str) -> Report:
    """What `mleredux grade` says of a submission that is not there, from what everybody may know of the task."""
    from mleredux.plugin.artifact import Report

    file = facts["submission"]["file"]
    return Report(
        competition_id=facts["id"],
        score=None,
        **{f"{name}_threshold": value for name, value in (facts["thresholds"] or {}).items()},
        submission_exists="does not exist" not in problem,
        valid_submission=False,
        is_lower_better=facts["direction"] == "minimize",
        created_at=datetime.now(UTC),
        submission_path=path or file,
        message=f"{file} {problem}.",
        task_version=facts["version"],
        metric=facts["metric"],
    )
