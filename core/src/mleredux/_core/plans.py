"""Plans: the validated request of a run, and of all runs of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from mleredux._core.capabilities import choose
from mleredux._core.debug_sample import refuse_mixed
from mleredux._core.grants import check_grants, is_foreign, protected_variables
from mleredux._core.own_machine import agent_reference, choose_here
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.calls import PRESET, without_preset
from mleredux._core.plugins.directory import installing
from mleredux._core.task_images import imported, placed
from mleredux._core.tools import absolute, check_tools, find_tools, is_path
from mleredux.errors import MlereduxError, NotFound, NotGranted
from mleredux.models import Agent, Grants, Limits, Task, first_problem
from mleredux.models.experiment import SET, Arm, Cell, Design, Plan, PlanLimits
from mleredux.models.units import MAX_SEED

Kind = TypeVar("Kind", bound=BaseModel)
Granted = Callable[[Agent, Grants, str | None], tuple[Grants, str | None]]
"""What an agent gets, by itself, what the plan grants it and the network mode asked for; with the mode to run it in."""


def plan(
    catalogue: Catalogue,
    task: str,
    agent: str,
    *,
    sandbox: str | None = None,
    seed: int = 0,
    limits: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    network: str | None = None,
    grants: Grants | None = None,
    own_machine: bool = False,
) -> dict[str, Any]:
    """Validate the request of a run before creating it; return fields for `RunStore.create`.

    Args:
        catalogue: Plugins.
        task, agent: Their ids or references; a task's reference only on its user's own machine.
        sandbox: None: the best that meets the agent's requirements.
        seed, limits, options: As in `mleredux.run`.
        network: None: the agent's default; an agent found by a reference gets an open network only if it is named here.
        grants: What else the agent may have.
        own_machine: Whether its user runs it on their own machine, where they may do without isolation.

    Raises:
        NotFound: There is no such task, agent or sandbox, or the task's metric can't be computed here.
        SandboxError: The sandbox does not work here.
        NotGranted: The agent asks for something that was not granted.
        MlereduxError: The agent has no such option, or needs what the sandbox lacks.
    """
    if not 0 <= seed <= MAX_SEED:
        raise MlereduxError(f"The seed is {seed}; libraries take seeds from 0 to {MAX_SEED}.", hint="Choose another.")
    chosen_options = dict(options or {})
    if PRESET in chosen_options:
        chosen_options = without_preset(catalogue.agent(agent), chosen_options)
    found_task = imported(catalogue, task) if own_machine else catalogue.task(task)
    found_agent = placed(catalogue.agent(agent, chosen_options), found_task)
    check_metric(catalogue, found_task)
    if found_agent.oracle and not own_machine:
        raise NotGranted(
            f"Agent {found_agent.id} submits the answers of tasks, so it runs on its user's own machine only.",
            hint="Run it without --server, with the task's package installed.",
        )
    if found_agent.attended and not own_machine:
        raise NotGranted(
            f"Agent {found_agent.id} waits for a person, and nobody sits at a server.",
            hint=f"Work on the task on your own machine: `mleredux start {task}`.",
        )
    given = grants or Grants()
    if own_machine:
        given = given.model_copy(update={"tools": tuple(map(absolute, given.tools))})
    elif paths := [name for name in given.tools if is_path(name)]:
        raise NotGranted(f"{paths[0]} is a path of another machine.", hint="Name tools that are installed there.")
    check_grants(found_agent, given, network, protected_variables(catalogue))
    wanted = network or found_agent.network
    if network is None and not is_foreign(found_agent):
        given = given.model_copy(update={"hosts": tuple(dict.fromkeys((*found_agent.hosts, *given.hosts)))})
    check_tools(found_agent, find_tools(catalogue, given.tools), given, wanted)
    run_limits = _limits(found_agent.limits, dict(limits or {}))
    installed = catalogue.capabilities()
    if sandbox is not None and sandbox not in installed:
        catalogue.sandbox(sandbox)  # reports available sandboxes, or why this one can't be used
    needed: dict[str, Any] = {"network": wanted, "gpus": run_limits.gpus, "hosts": bool(given.hosts)}
    if own_machine:
        chosen = choose_here(catalogue, found_agent, installed, sandbox, **needed)
    else:
        chosen = choose(found_agent, installed, sandbox, **needed)
    if wanted == "gateway" and not catalogue.hook("mleredux_open_gateway").get_hookimpls():
        raise NotFound("No LLM gateway is installed.", hint="Install one: `pip install mleredux-gateway`.")
    return {
        "task": found_task.id,
        "agent": found_agent.reference or found_agent.id,
        "sandbox": chosen,
        "seed": seed,
        "limits": run_limits,
        "network": wanted,
        "grants": given,
        "options": chosen_options,
    }


def check_metric(catalogue: Catalogue, task: Task) -> None:
    """Check that a task's metric can be computed here, before an agent works for it.

    Raises:
        NotFound: Its grader, or a library that the grader needs, is not installed; the hint says what to install.
    """
    grader = task.metric.grader
    if not isinstance(grader, str):
        requires = grader.requires
    elif entry := catalogue.entries("graders").get(grader):
        requires = entry.ref.summary.get("requires", {})
    else:
        hint = installing("graders", grader) or "See `mleredux list graders`."
        raise NotFound(f"Task {task.id} is graded with {grader!r}, and there is no such grader.", hint=hint)
    for module, package in requires.items():
        if find_spec(module) is None:
            name = grader if isinstance(grader, str) else grader.id
            raise NotFound(
                f"Task {task.id} is graded with {name}, which needs the package {module}.",
                hint=f"Install it: `pip install {package!r}`.",
            )


def plan_of(
    tasks: Iterable[str],
    sets: Iterable[str],
    agents: Iterable[str],
    seeds: Iterable[int],
    *,
    limits: Mapping[str, Any],
    context: str | None,
    **same: Any,
) -> Plan:
    """The plan of a plain matrix: an arm for each agent, which are all run in the same way (the fields of `Arm`)."""
    contexts = {} if context is None else {"*": context}
    arms = {
        f"arm-{number}": Arm(agent=agent, contexts=contexts, **same)
        for number, agent in enumerate(dict.fromkeys(agents))
    }
    names = (*tasks, *(f"{SET}{name}" for name in sets))
    design = Design(name="runs", tasks=names, seeds=tuple(seeds) or (0,), order="by_task")
    return Plan(experiment=design, limits=_checked(PlanLimits, limits), arms=arms)


def plan_tasks(catalogue: Catalogue, plan: Plan) -> list[str]:
    """The ids of a plan's tasks, sets resolved, in order.

    Raises:
        NotFound: A set has no tasks.
        DataError: There are samples (`+debug-N`) beside whole tasks.
    """
    found: list[str] = []
    for name in plan.experiment.tasks:
        found += catalogue.task_names((), (name.removeprefix(SET),)) if name.startswith(SET) else (name,)
    refuse_mixed(found, "An experiment" if plan.experiment.name != "runs" else "One command")
    return list(dict.fromkeys(found))


def plan_cells(
    catalogue: Catalogue,
    matrix: Plan,
    pinned: Mapping[str, str] | None = None,
    granted: Granted | None = None,
) -> list[tuple[Cell, dict[str, Any]]]:
    """All runs of a plan in the order in which they are started, each with fields for `RunStore.create`.

    Args:
        pinned: Exact references of agents (`repo:…@COMMIT`) by the references that the plan names.
        granted: What each arm's agent gets; None: what the plan grants.

    Raises:
        MlereduxError: One of them can't run here.
    """
    arms, known = matrix.all_arms(), dict[tuple[str, str], dict[str, Any]]()
    planned = []
    for cell in matrix.cells(plan_tasks(catalogue, matrix)):
        if (cell.arm, cell.task) not in known:
            arm = arms[cell.arm]
            arm = arm.model_copy(
                update={"agent": (pinned or {}).get(arm.agent) or agent_reference(catalogue, arm.agent)}
            )
            known[cell.arm, cell.task] = _fields(catalogue, arm, cell.task, granted)
        planned.append((cell, {**known[cell.arm, cell.task], "seed": cell.seed}))
    return planned


def _fields(catalogue: Catalogue, arm: Arm, task: str, granted: Granted | None) -> dict[str, Any]:
    asked = arm.request(task)
    described = {name: asked.pop(name) for name in ("obfuscated", "context")}
    verify = bool(asked.pop("verify"))
    if granted is not None:
        agent = catalogue.agent(asked["agent"], asked.get("options") or {})
        asked["grants"], asked["network"] = granted(agent, arm.grants, arm.network)
    return {**plan(catalogue, own_machine=True, **asked), **described, "verify": verify}


def _limits(default: Limits, asked: dict[str, Any]) -> Limits:
    """Apply requested limits to the agent's; only defaults are reduced to the machine's resources."""
    from mleredux._core.sandboxes.slots import machine  # needs psutil

    has = machine()
    fitting = {
        "cpus": min(default.cpus, has.cpus),
        "memory_mb": min(default.memory_mb, has.memory_mb),
        **asked,
    }
    return _checked(Limits, {**default.model_dump(), **fitting})


def _checked(kind: type[Kind], limits: Mapping[str, Any]) -> Kind:
    """The limits as a model; one sentence if one of them is out of range."""
    try:
        return kind.model_validate(dict(limits))
    except ValidationError as error:
        name, message, value = first_problem(error)
        wanted = message.removeprefix("Input should be ")
        raise MlereduxError(f"The limit {name} is {value!r}; it should be {wanted}.") from error
