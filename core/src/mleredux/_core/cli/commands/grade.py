"""`mleredux grade`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mleredux._core.cli.context import backend, catalogue
from mleredux._core.cli.options import data_dir_option, json_option, server_option
from mleredux._core.cli.output import check_order, echo, print_facts, print_json, print_table
from mleredux._core.cli.run_table import print_feedback
from mleredux.models.formats import counted, facts, score

COLUMNS = ("submission", "task", "valid", "score", "medal", "remark")
"""Columns of the list of graded submissions."""


@click.command()
@click.argument("submission", type=click.Path(path_type=Path), required=False)
@click.argument("task", required=False)
@click.option(
    "--jsonl",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Grade every line of an MLE-bench submission.jsonl (competition_id, submission_path).",
)
@click.option(
    "--metric",
    metavar="FILE.py:NAME",
    help="Grade PREDICTIONS against ANSWERS, two CSV files given as the arguments, with your own function.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), help="Folder for the report of --jsonl."
)
@server_option("--project", metavar="NAME", help="The project whose quota the grading counts against.")
@data_dir_option
@json_option
@click.pass_context
def command(ctx: click.Context, /, submission: Path | None, task: str | None, as_json: bool, **parameters: Any) -> None:
    """Grade the file SUBMISSION against the answers of TASK.

    A submission that can't be scored also gets a report, with `valid_submission: false` and the reason.

    \b
    Exit codes: 0 scored · 1 error · 2 usage · 3 not valid; with --jsonl, any line, or no line
    """
    jsonl, metric, project = parameters["jsonl"], parameters["metric"], parameters["project"]
    if metric is not None:
        if submission is None or task is None or jsonl is not None:
            raise click.UsageError(
                "Specify two files, e.g. `mleredux grade --metric m.py:f predictions.csv answers.csv`."
            )
        files = catalogue(ctx).get("commands", "grade metric")
        ctx.invoke(files, metric=metric, predictions=submission, answers=Path(task), as_json=as_json)
        return
    there = backend(ctx, data_dir=parameters["data_dir"])
    if jsonl is not None:
        if submission is not None:
            raise click.UsageError("Specify either SUBMISSION and TASK, or --jsonl.")
        total, path = there.grade_jsonl(jsonl, output_dir=parameters["output"], project=project)
        if as_json:
            print_json(total)
        else:
            print_table(list(map(_line, total["competition_reports"])), COLUMNS, give_way=("submission",))
            number = counted(total["total_runs"], "submission")
            click.echo(f"{total['total_valid_submissions']} of {number} valid, ", nl=False)
            click.echo(f"medals: {total['total_medals']}, above median: {total['total_above_median']}.")
        if path is not None:
            echo(f"Report: {path}", err=True)
        ctx.exit(0 if total["total_valid_submissions"] == total["total_runs"] > 0 else 3)
    if submission is None or task is None:
        raise click.UsageError("Specify a submission file and its task, e.g. `mleredux grade submission.csv digits`.")
    check_order(ctx, submission, task)
    graded = there.grade(submission, task, project=project)
    if as_json:
        print_json(graded.model_dump(mode="json"))
    elif graded.score is None:
        echo(f"Invalid: {graded.message}")
    else:
        print_facts(dict(facts(graded)))
        print_feedback(graded.details)
    ctx.exit(0 if graded.valid_submission else 3 if submission.exists() else 1)


def _line(report: dict[str, Any]) -> dict[str, Any]:
    remarks = " ".join(filter(None, (report["message"], report["note"])))
    medal = next((name for name in ("gold", "silver", "bronze") if report[f"{name}_medal"]), None)
    row = {"submission": report["submission_path"], "task": report["competition_id"], "remark": remarks or None}
    points = None if report["score"] is None else score(report["score"])
    return {**row, "valid": report["valid_submission"], "score": points, "medal": medal}
