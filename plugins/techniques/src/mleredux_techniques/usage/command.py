"""`mleredux runs techniques`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from mleredux.plugin.command import DataStore, data_dir_option, json_option, print_json

if TYPE_CHECKING:
    from mleredux.plugin.artifact import Run, RunStore

    from mleredux_techniques.usage.effect import TechniqueUse


@click.command("techniques")
@click.argument("runs", nargs=-1, required=True)
@data_dir_option
@json_option
@click.pass_obj
def command(store: RunStore, runs: tuple[str, ...], data_dir: str | None, as_json: bool) -> None:
    """Score how much techniques improve competition RUNS whose programs can skip them on demand.

    A program declares a technique with a switch: it skips the step if the environment variable MLEREDUX_WITHOUT is the
    technique's name. The program is executed with and without the step. The result is kept in each run; `compare
    --measure technique_use` compares arms by it.
    """
    from mleredux.plugin.artifact import Artifact, add_artifact
    from mleredux.plugin.files import write_atomically

    from mleredux_techniques.usage.effect import FILE

    results = []
    for name in runs:
        run = store.get(name)
        used = use_of(run, DataStore(data_dir))
        write_atomically(run.path / FILE, used.model_dump_json(indent=1) + "\n")
        title = "Techniques used"
        add_artifact(run, Artifact(path=FILE, media_type="application/json", producer="techniques", title=title))
        results.append(used)
        if not as_json:
            click.echo(_shown(used))
    if as_json:
        print_json([used.model_dump(mode="json") for used in results])


def use_of(run: Run, data: DataStore) -> TechniqueUse:
    """Score a finished run.

    Raises:
        MlereduxError: The run is a technique run, has no valid submission, or its data has no table.
    """
    from mleredux.errors import MlereduxError
    from mleredux.plugin.command import current
    from mleredux.plugin.host import prepare
    from mleredux_rollout import texts_of

    from mleredux_techniques._kit.data.discovery import discover
    from mleredux_techniques.usage.effect import TechniqueUse, switches, uses_of

    report, catalogue = run.report, current()
    if report is None or report.score is None or "@" in run.spec.task:
        hint = "Specify graded competition runs; technique runs have their own score."
        raise MlereduxError(f"Run {run.id} is not a competition run with a valid submission.", hint=hint)
    task = catalogue.task(run.spec.task)
    known = list(catalogue.entries("techniques"))
    declared = {text.content: names for text in texts_of(run) if (names := switches(text.content, known))}
    if not declared:
        return TechniqueUse(run=run.id, task=task.id, reward=None, uses=())
    prepared = prepare(task, catalogue, data)
    dataset, _source = discover(task, prepared.private.parent, images=False)
    program, names = list(declared.items())[-1]
    uses = tuple(uses_of(program, names, task, dataset, prepared.public))
    reward = round(min(1.0, sum(use.reward for use in uses)), 6)
    return TechniqueUse(run=run.id, task=task.id, reward=reward, uses=uses)


def _shown(used: TechniqueUse) -> str:
    reward = "not judged: no program declares a switch" if used.reward is None else f"{used.reward:.2f}"
    lines = [f"{used.run} ({used.task}): technique use {reward}"]
    return "\n".join([*lines, *(f"  {use.technique} {use.reward:.2f}: {use.why}" for use in used.uses)])
