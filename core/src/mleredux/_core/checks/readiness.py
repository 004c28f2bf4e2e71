"""Check whether given tasks and agents will run on this machine, before anything is downloaded or started."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mleredux._core.checks.machine import Diagnosis, checked
from mleredux._core.data.datastore import DataStore
from mleredux._core.data.space import check as check_space
from mleredux._core.planning.names import check_metric
from mleredux._core.planning.plans import plan
from mleredux._core.plugins import Catalogue
from mleredux._core.protocols import Finding
from mleredux.errors import MlereduxError
from mleredux.models import Task
from mleredux.models.formats import counted, plain
from mleredux.models.request import Request

_QUESTIONS = 4
_NAMED = 30


def diagnose_tasks(catalogue: Catalogue, tasks: Sequence[Task], data: DataStore) -> list[Diagnosis]:
    """Check whether tasks' metrics can be computed, whether their data is present or can be downloaded, and whether the
    disk has room for all of it.

    Account, credentials and accepted rules are checked with the publisher of the data; nothing is downloaded.
    """
    diagnoses = _grouped("metric", "Metrics", tasks, [_refused(check_metric, catalogue, task) for task in tasks])
    with ThreadPoolExecutor(_QUESTIONS) as pool:
        refusals = list(pool.map(lambda task: _refused(data.check_raw, task), tasks))
    diagnoses += _grouped("data", "Data or the right to download it", tasks, refusals)
    needed = [task for task in tasks if not (data.home(task) / "prepared").is_dir()]
    error = _refused(check_space, data, needed) if needed else None
    size = sum(task.resources.size_gb or 0 for task in needed)
    enough = f"{len(tasks) - len(needed)} of {counted(len(tasks), 'task')} prepared"
    enough += f"; there is room for the others ({plain(size)} GB)." if needed else "."
    finding = Finding("disk", error is None, error.message if error else enough, error.hint if error else None)
    return [*diagnoses, Diagnosis("disk", finding, required=True)]


def diagnose_pair(catalogue: Catalogue, task: str, agent: str, *, sandbox: str | None = None) -> list[Diagnosis]:
    """Check whether an agent can run on a task on this machine: plugins, sandbox, resources, LLM keys."""
    name = f"{agent} on {task}"
    try:
        [planned] = plan(Request.single(task, agent, sandbox=sandbox), catalogue, own_machine=True)
        needs = catalogue.task(task).resources
    except MlereduxError as error:
        return [Diagnosis("agent", Finding(name, False, error.message, error.hint), required=True)]
    chosen = planned.sandbox
    diagnoses = [Diagnosis("agent", Finding(name, True, f"It runs in sandbox {chosen}."))]
    [findings] = checked([chosen], lambda name: catalogue.sandbox(name).check())
    works = any(finding.ok for finding in findings)
    diagnoses += [Diagnosis("sandbox", finding, required=not works) for finding in findings]
    diagnoses += [Diagnosis("keys", finding) for finding in catalogue.network_findings(planned)]
    limits = planned.limits
    for what, least, has in (("memory", needs.memory_mb, limits.memory_mb), ("gpus", needs.gpus, limits.gpus)):
        if least and has < least:
            remedy = f"Run it with --{what} {least}{'m' if what == 'memory' else ''}, or on a larger machine."
            message = f"{task} requests {least:,} of {what}, but the run would get {has:,}."
            diagnoses.append(Diagnosis("resources", Finding(what, False, message, remedy)))
    return diagnoses


def _refused(question: Any, *arguments: Any) -> MlereduxError | None:
    try:
        question(*arguments)
    except MlereduxError as error:
        return error
    return None


def _grouped(area: str, what: str, tasks: Sequence[Task], refusals: Sequence[MlereduxError | None]) -> list[Diagnosis]:
    """Return a diagnosis for each reason, with the tasks it applies to."""
    reasons: dict[str, list[tuple[Task, MlereduxError]]] = {}
    for task, error in zip(tasks, refusals, strict=True):
        if error is not None:
            reasons.setdefault(error.message.replace(task.id, "…"), []).append((task, error))
    good = sum(error is None for error in refusals)
    tally = f"{what}: {good} of {counted(len(tasks), 'task')}."
    diagnoses = [Diagnosis(area, Finding("tasks", True, tally))] if good else []
    for of in reasons.values():
        (first, error), others = of[0], [task.id for task, _ in of[1:]]
        more = f" The same applies to {', '.join(others[:_NAMED])}" if others else ""
        end = f" and {len(others) - _NAMED} more." if len(others) > _NAMED else "." if others else ""
        finding = Finding(first.id, False, f"{error.message}{more}{end}", error.hint)
        diagnoses.append(Diagnosis(area, finding, required=True))
    return diagnoses
