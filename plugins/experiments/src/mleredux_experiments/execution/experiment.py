"""Start, open and extend experiments in a runs folder."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from mleredux.errors import MlereduxError, NotFound
from mleredux.plugin.artifact import Run, RunStore
from mleredux.plugin.command import Catalogue, DataStore
from mleredux.plugin.experiment import Plan, agent_reference, resolved

from mleredux_experiments.execution.execution import Execution
from mleredux_experiments.execution.plan import check_plan, read_plan
from mleredux_experiments.execution.record import (
    FOLDER,
    RECORD_FILE,
    Record,
    changed_arms,
    differences,
    digest_of,
    open_record,
)

Progress = Callable[[Run, str], None]


def find(argument: str, runs_dir: str | None, catalogue: Catalogue) -> Plan | Execution:
    """Return the plan of a plan file, or the experiment of a folder or of a name in the runs folder.

    Raises:
        NotFound: The argument is not a plan file or an experiment.
    """
    path, store = Path(argument), RunStore(runs_dir)
    if path.is_file():
        return read_plan(path, catalogue)
    folder = path if (path / RECORD_FILE).is_file() else store.path / FOLDER / argument
    if (folder / RECORD_FILE).is_file():
        return open_experiment(folder, catalogue)
    names = [record.parent.name for record in (store.path / FOLDER).glob(f"*/{RECORD_FILE}")]
    near = difflib.get_close_matches(argument, names, n=1)
    raise NotFound(
        f"There is no plan file, and no experiment {argument!r} in {store.path}.",
        hint=f"Did you mean {near[0]}?" if near else "Specify the path of a plan, or choose a folder with --runs-dir.",
    )


def open_experiment(folder: Path, catalogue: Catalogue) -> Execution:
    """Open the experiment of a folder that contains `experiment.json`."""
    record = open_record(folder)
    return Execution(record, folder, RunStore((folder / record.runs).resolve()), catalogue)


def start(
    plan: Plan, catalogue: Catalogue, *, runs_dir: Path | str | None, data_dir: Path | str | None, grow: bool = False
) -> Execution:
    """Freeze a plan, or continue the experiment with its name.

    A plan that was changed before the first result replaces the frozen one. Later changes are recorded as deviations;
    only arms that have runs must not change.

    Args:
        grow: Add the plan's arms and seeds to those of the experiment, instead of replacing its plan.

    Raises:
        MlereduxError: The plan cannot be executed here, or changes an arm that has runs.
    """
    store = RunStore(runs_dir)
    folder = store.path / FOLDER / plan.experiment.name
    if (folder / RECORD_FILE).is_file():
        execution = open_experiment(folder, catalogue)
        if grow:
            old, seeds = execution.record.plan, (*execution.record.plan.experiment.seeds, *plan.experiment.seeds)
            design = old.experiment.model_copy(update={"seeds": tuple(dict.fromkeys(seeds))})
            plan = old.model_copy(update={"experiment": design, "arms": {**old.arms, **plan.arms}})
        if digest_of(plan) != execution.record.file_digest:
            check_plan(plan, catalogue)
            with execution.claim():
                _replace(execution, plan)
        _note_versions(execution)
        return execution
    check_plan(plan, catalogue)
    record = Record(
        name=plan.experiment.name,
        plan=plan,
        digest=digest_of(plan),
        file_digest=digest_of(plan),
        pinned=_pinned(plan, catalogue, {}),
        versions=_versions(plan, catalogue),
        data_dir=str(DataStore(data_dir).path.absolute()),
        created_at=datetime.now(UTC),
    )
    record.save(folder)
    return Execution(record, folder, store, catalogue)


def extend(execution: Execution, *, tasks: Iterable[str] = (), seeds: Iterable[int] = ()) -> list[str]:
    """Add tasks (or sets as `set:NAME`) and seeds to an experiment; existing runs are kept.

    Returns:
        A description of each addition.

    Raises:
        MlereduxError: Nothing is new, or an addition cannot be executed here.
    """
    record, design = execution.record, execution.record.plan.experiment
    new_tasks = [task for task in dict.fromkeys(tasks) if task not in design.tasks]
    new_seeds = [seed for seed in dict.fromkeys(seeds) if seed not in design.seeds]
    words = [f"tasks {', '.join(new_tasks)}"] if new_tasks else []
    words += [f"seeds {', '.join(map(str, new_seeds))}"] if new_seeds else []
    if not words:
        raise MlereduxError("The experiment already has these tasks and seeds.", hint="Choose different ones.")
    with execution.claim():
        record.extra_tasks, record.extra_seeds = (*record.extra_tasks, *new_tasks), (*record.extra_seeds, *new_seeds)
        plan = record.extended(record.plan)
        check_plan(plan, execution.catalogue)
        record.changed(f"Extended by {' and '.join(words)}.", execution.results())
        record.plan, record.digest, record.stopped = plan, digest_of(plan), None
        record.versions = {**_versions(plan, execution.catalogue), **record.versions}
        record.save(execution.folder)
    execution.__dict__.pop("planned", None)
    return words


def _replace(execution: Execution, written: Plan) -> None:
    record, results = execution.record, execution.results()
    plan = record.extended(written)
    changed = changed_arms(record.plan, plan) if results else {}
    started = {place.cell.arm for place in execution.places() if place.runs}
    for arm in changed.keys() & started:
        message = f"Arm {arm} was changed after its first run ({changed[arm]})."
        raise MlereduxError(message, hint="Rename the changed arm or the experiment.")
    if changes := differences(record.plan, plan):
        record.changed(f"The plan was changed: {'; '.join(changes)}.", results)
    record.pinned |= _pinned(plan, execution.catalogue, record.pinned)
    record.plan, record.digest, record.file_digest = plan, digest_of(plan), digest_of(written)
    record.save(execution.folder)
    execution.__dict__.pop("planned", None)


def _note_versions(execution: Execution) -> None:
    """Record changes of the installed versions."""
    record, now = execution.record, _versions(execution.record.plan, execution.catalogue)
    changed = [(name, old) for name, old in record.versions.items() if now.get(name, old) != old]
    differing = [f"{name} was {old} and is now {now[name]}" for name, old in changed]
    if differing:
        record.changed(f"Different versions are installed: {'; '.join(differing)}.", execution.results())
    if now != record.versions:
        record.versions = now
        record.save(execution.folder)


def _pinned(plan: Plan, catalogue: Catalogue, known: dict[str, str]) -> dict[str, str]:
    agents = {arm.agent for arm in plan.all_arms().values()} - catalogue.entries("agents").keys() - known.keys()
    return {name: catalogue.agent(agent_reference(catalogue, name)).reference or name for name in agents}


def _versions(plan: Plan, catalogue: Catalogue) -> dict[str, str]:
    """Return the versions of mleredux, of the arms' agents, and of the tasks."""
    from mleredux import __version__

    arms = plan.all_arms().values()
    tasks = {arm.request(task)["task"] for arm in arms for task in resolved(plan.request, catalogue).tasks}
    agents = {arm.agent for arm in arms} & catalogue.entries("agents").keys()
    return {
        "mleredux": __version__,
        **{f"agent {name}": catalogue.agent(name).version for name in sorted(agents)},
        **{f"task {name}": catalogue.task(name).version for name in sorted(tasks)},
    }
