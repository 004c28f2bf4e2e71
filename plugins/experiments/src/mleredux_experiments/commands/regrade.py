"""`mleredux regrade`."""

from __future__ import annotations

from typing import Any

import click
from mleredux.errors import MlereduxError
from mleredux.models.formats import plain
from mleredux.plugin.artifact import Report, RunStore
from mleredux.plugin.command import (
    DataStore,
    catalogue,
    data_dir_option,
    json_option,
    print_json,
    print_table,
    runs_dir_option,
)
from mleredux.plugin.host import regrade


@click.command("regrade")
@click.argument("runs", nargs=-1)
@click.option("--experiment", metavar="NAME", help="Include all runs of this experiment that have a report.")
@runs_dir_option
@data_dir_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    runs: tuple[str, ...],
    experiment: str | None,
    runs_dir: str | None,
    data_dir: str | None,
    as_json: bool,
) -> None:
    """Grade finished runs again with the installed task and grader; all reports are kept, with their versions."""
    store = RunStore(runs_dir)
    found = [store.get(name) for name in dict.fromkeys(runs)]
    if experiment is not None:
        found += [
            store.get(row["id"]) for row in store.rows() if row["experiment"] == experiment and row["status"] == "done"
        ]
    if not found:
        raise click.UsageError("Specify runs, or an experiment with finished runs (--experiment).", ctx)
    records: list[dict[str, Any]] = []
    for run in found:
        record: dict[str, Any] = {"id": run.id, "task": run.spec.task, "before": None, "after": None, "error": None}
        try:
            before, after = regrade(run, catalogue(ctx), DataStore(data_dir) if data_dir else None)
            record |= {"before": _facts(before), "after": _facts(after)}
            store.update(run)
        except MlereduxError as error:
            record["error"] = str(error)
        records.append(record)
    if as_json:
        print_json(records)
    else:
        rows = [
            {"id": one["id"], "task": one["task"], **{name: _text(one[name]) for name in ("before", "after")}}
            for one in records
        ]
        print_table(rows, ("id", "task", "before", "after"), ("id",))
        for one in records:
            if one["error"]:
                click.echo(one["error"], err=True)
    ctx.exit(1 if any(one["error"] for one in records) else 0)


def _facts(report: Report) -> dict[str, Any]:
    return {
        "score": report.score,
        "medal": report.medal,
        "valid": report.valid_submission,
        "task_version": report.task_version,
    }


def _text(facts: dict[str, Any] | None) -> str | None:
    if facts is None:
        return None
    score = "invalid" if not facts["valid"] else plain(facts["score"], 5) if facts["score"] is not None else "-"
    return f"{score} {facts['medal'] or ''}".strip() + f" (version {facts['task_version']})"
