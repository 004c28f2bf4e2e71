"""Extend experiments with tasks and seeds, and retry runs that failed for reasons other than their agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mleredux.plugin.experiment import Plan, resolved
from sqlalchemy import select

from mleredux_server.accounts.secrets import providing
from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import Experiment, Job, RunRow, now
from mleredux_server.protocol.idempotency import Answer, Claim
from mleredux_server.protocol.problems import Problem
from mleredux_server.runs.requests import MOST_RUNS, Planned, make_runs, plan_run
from mleredux_server.runs.summary import ENDED, lacks_result
from mleredux_server.scheduler.actions import retry_run
from mleredux_server.schemas.runs import ExtensionRequest, HowToRun, KeptRequest
from mleredux_server.service import Service


class Outdated(Exception):
    """Another request has changed the experiment since it was read: read it again."""


def extend(
    service: Service,
    caller: Caller,
    experiment: Experiment,
    body: ExtensionRequest,
    claim: Claim,
    answer: Callable[[list[RunRow]], Answer],
) -> list[RunRow]:
    """Create the runs of additional tasks and seeds, all or none; agents stay at the commits of the first runs.

    Raises:
        Replayed: The request is a repeat.
        Outdated: Another request has changed the experiment since it was read.
        Problem: The experiment has no plan, already has all of them, or a quota does not allow it.
        MlereduxError: One of the runs is not possible here.
    """
    plan, rows = _plan_of(experiment), _rows_of(service, experiment)
    design = plan.experiment
    update = {
        "tasks": tuple(dict.fromkeys((*design.tasks, *body.tasks))),
        "seeds": tuple(dict.fromkeys((*design.seeds, *body.seeds))),
    }
    larger = plan.model_copy(update={"experiment": design.model_copy(update=update)})
    arms, have = larger.all_arms(), {(row.arm, row.task, row.seed) for row in rows}
    latest_first = rows[::-1]  # so that the earliest one serves as the example, as its creator requested it
    examples = {(row.arm, row.task): row for row in latest_first} | {(row.arm, ""): row for row in latest_first}
    planned: list[Planned] = []
    for cell in resolved(larger.request, service.catalogue).cells():
        task = arms[cell.arm].request(cell.task)["task"]
        if (cell.arm, task, cell.seed) in have:
            continue
        example = examples.get((cell.arm, task)) or examples.get((cell.arm, ""))
        if example is None:
            raise Problem("conflict", f"Arm {cell.arm[:200]} has no runs left.", hint="Create another experiment.")
        names_task = example.request.get("context") is not None and "{task}" in (arms[cell.arm].context or "")
        if example.task != task and names_task:
            hint = "Extend by seeds only, or create another experiment."
            raise Problem("conflict", f"Arm {cell.arm[:200]} has a context, but no text for {task}.", hint=hint)
        chosen = example.user_id == caller.user_id
        request = KeptRequest.of(example.request, chosen_by_caller=chosen, task=task, seed=cell.seed)
        with providing(service, caller, request.secrets, experiment.project_id, own=not request.project_secrets):
            run = plan_run(service, request)
        planned.append(replace(run, plan=run.plan.model_copy(update={"arm": cell.arm})))
    if not planned:
        raise Problem("conflict", "The experiment already has these tasks and seeds.", hint="Choose different ones.")
    if len(rows) + len(planned) > MOST_RUNS:
        raise Problem("too-large", f"The maximum is {MOST_RUNS} runs.", hint="Create another experiment.")
    words = [f"{name} {', '.join(map(str, values))}" for name in ("tasks", "seeds") if (values := getattr(body, name))]
    results = sum(row.status in ENDED for row in rows)
    change = {"time": now().isoformat(), "what": f"Extended by {' and '.join(words)}.", "results": results}

    def larger_now(there: Experiment) -> None:
        document = there.request
        if document["plan"] != experiment.request["plan"]:
            raise Outdated
        table = {**document["plan"]["experiment"], **{name: list(values) for name, values in update.items()}}
        experiment.request = there.request = {
            **document,
            "plan": {**document["plan"], "experiment": table},
            "changes": [*document.get("changes", []), change],
            "stopped": None,
        }

    how = HowToRun(project=experiment.project_id)
    return make_runs(
        service, caller, planned, how, experiment=experiment, larger=larger_now, claim=claim, answer=answer
    )


def retry_broken(service: Service, caller: Caller, experiment: Experiment) -> int:
    """Retry all runs that were cancelled, or failed because of the environment or the task; return their number.

    Cells that have a run that counts, or one that has not ended, are left alone: nothing is retried twice.
    """
    rows = _rows_of(service, experiment)
    settled = {(row.arm, row.agent, row.task, row.seed) for row in rows if not lacks_result(row.status, row.cause)}
    again = {
        (row.arm, row.agent, row.task, row.seed): row.id
        for row in rows
        if (row.arm, row.agent, row.task, row.seed) not in settled
    }
    with service.database.reading() as session:
        busy = set(session.scalars(select(Job.id).where(Job.id.in_(again.values()), Job.state != "ended")))
    retried = 0
    for run_id in again.values():
        if run_id not in busy:
            try:
                retry_run(service, caller, run_id)
                retried += 1
            except Problem as problem:
                if problem.slug != "conflict":  # otherwise, another request retries it
                    raise
    return retried


def _rows_of(service: Service, experiment: Experiment) -> list[RunRow]:
    with service.database.reading() as session:
        query = select(RunRow).where(RunRow.experiment_id == experiment.id).order_by(RunRow.created_at, RunRow.id)
        return list(session.scalars(query))


def _plan_of(experiment: Experiment) -> Plan:
    document: dict[str, Any] | None = experiment.request.get("plan")
    if document is None:
        raise Problem("conflict", "The experiment was created without a plan.", hint="Create another one.")
    return Plan.model_validate(document)
