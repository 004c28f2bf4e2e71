"""`mleredux audit floor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from mleredux.models.formats import plain, score
from mleredux.plugin.command import catalogue, data_dir_option, echo, json_option, print_json, print_table

if TYPE_CHECKING:
    from mleredux_audit_floor.floor import Floor, Row


@click.command("floor")
@click.argument("tasks", nargs=-1)
@click.option("--set", "sets", multiple=True, metavar="NAME", help="Include all tasks of this set (starter, lite, …).")
@click.option("--sandbox", metavar="NAME", help="Also run an agent that looks for the answers, in this sandbox.")
@data_dir_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    tasks: tuple[str, ...],
    sets: tuple[str, ...],
    sandbox: str | None,
    data_dir: str | None,
    as_json: bool,
) -> None:
    """Score trivial submissions on TASKS: no rows, the sample, constants, random values, copies of public columns, and
    injected formulas and instructions. The exit code is 3 if one of them beats a task's median or wins a medal."""
    from mleredux.errors import DataError
    from mleredux.plugin.command import DataStore

    from mleredux_audit_floor.floor import floor_of
    from mleredux_audit_floor.panel import keep

    plugins, store = catalogue(ctx), DataStore(data_dir)
    chosen = plugins.task_names(tasks, sets)
    if not chosen:
        raise click.UsageError("Specify a task, e.g. `mleredux audit floor digits`, or a set with --set.")
    floors = []
    for name in chosen:
        task = plugins.task(name)
        prepared = store.find(task)
        if prepared is None:
            raise DataError(f"Task {name} is not prepared.", hint=f"Prepare it first: `mleredux prepare {name}`.")
        floor = floor_of(task, prepared.public, prepared.private, plugins)
        if sandbox is not None:
            floor.rows.append(_probed(name, sandbox, data_dir))
        keep(floor, store.home(task))
        floors.append(floor)
        if not as_json:
            _show(floor)
    if as_json:
        print_json([floor.as_json() for floor in floors])
    ctx.exit(3 if any(floor.defects for floor in floors) else 0)


def _probed(task: str, sandbox: str, data_dir: str | None) -> Row:
    import tempfile

    import mleredux
    from mleredux.errors import MlereduxError

    from mleredux_audit_floor.floor import row_of

    with tempfile.TemporaryDirectory(prefix="mleredux-floor-") as runs_dir:
        run = mleredux.run(task, agent="hunter", sandbox=sandbox, data_dir=data_dir, runs_dir=runs_dir)
        if run.report is None:
            raise MlereduxError(f"The hunter could not be graded on {task}: {run.message}")
        lines = run.agent_log.read_text(errors="replace").splitlines()[-1:]
        return row_of("hunter", [("hunter", lines[0] if lines else "", run.report)])


def _show(floor: Floor) -> None:
    median = "" if floor.median is None else f", median {plain(floor.median, 6)}"
    click.echo(f"{floor.task} ({floor.metric}{median})")
    rows = [
        {"agent": row.kind, "score": None if row.score is None else score(row.score), "medal": row.medal,
         "percentile": None if row.percentile is None else f"{row.percentile:.0f} %",
         "valid": f"{row.scored} of {row.tried}", "best": row.best}
        for row in floor.rows
    ]  # fmt: skip
    print_table(rows, ("agent", "score", "percentile", "medal", "valid", "best"), give_way=("best",))
    for sentence in floor.defects:
        echo(f"defect: {sentence}")
    click.echo()
