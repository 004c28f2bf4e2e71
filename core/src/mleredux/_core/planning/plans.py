"""Turn requests into plans: validate each run, check that it is permitted, and determine its grants and its sandbox."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from mleredux._core.planning.grants import check_grants, check_tools, check_variables, requests_of
from mleredux._core.planning.names import agent_reference, check_metric, imported, resolved
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.calls import PRESET, without_preset
from mleredux._core.plugins.capabilities import Capabilities, choose, fitting, needs_of
from mleredux._core.protocols import Finding
from mleredux._core.sandboxes.task_images import placed
from mleredux._core.sandboxes.tools import absolute, find_tools, is_path
from mleredux._core.sandboxes.variables import is_foreign, protected_variables
from mleredux.errors import MlereduxError, NotFound, NotGranted, SandboxError
from mleredux.models import Agent, Grants, Limits, RunPlan
from mleredux.models.agent import Network
from mleredux.models.request import Arm, PlanLimits, Request, checked_limits

Granted = Callable[[Agent, Grants, str | None], tuple[Grants, str | None]]
"""Determines an agent's grants from the agent, the requested grants and the requested network mode; also returns the
network mode to run it in."""
_CHECK_SECONDS = 10.0
_checked: dict[str, tuple[float, Finding | None]] = {}


def plan(
    request: Request,
    catalogue: Catalogue,
    *,
    granted: Granted = lambda _agent, grants, network: (grants, network),
    own_machine: bool = False,
) -> list[RunPlan]:
    """Return all runs of a request in the order in which they start, all validated before the first is created.

    Args:
        request: The tasks, arms and seeds.
        catalogue: The plugins.
        granted: Determines the access of each arm's agent; by default, the grants of the arm. An agent found by a
            reference gets an open network only if the returned mode is `open`.
        own_machine: Whether users run agents on their own machine, where they may name tasks and agents by path, and
            may run them without isolation.

    Raises:
        NotFound: A task, agent or sandbox does not exist, or a task's metric can't be computed on this machine.
        SandboxError: The sandbox does not work on this machine.
        NotGranted: An agent requests access that was not granted.
        MlereduxError: An option of an agent does not exist, or the sandbox does not meet a requirement.
    """
    request = resolved(request, catalogue)
    planner = _Planner(catalogue, granted, own_machine)
    agents: dict[str, tuple[Arm, Agent]] = {}
    plans: dict[tuple[str, str], RunPlan] = {}
    cells = request.cells()
    for arm, task, _ in cells:
        if arm not in agents:
            agents[arm] = planner.configured(request.arms[arm])
        if (arm, task) not in plans:
            plans[arm, task] = planner.plan(task, *agents[arm])
    experiment = request.experiment
    return [
        plans[arm, task].model_copy(
            update={"seed": seed, "experiment": experiment, "arm": arm if experiment is not None else None}
        )
        for arm, task, seed in cells
    ]


class _Planner:
    """Plans one run of each task and arm.

    Args:
        catalogue, granted, own_machine: As in `plan`.
    """

    def __init__(self, catalogue: Catalogue, granted: Granted, own_machine: bool) -> None:
        self._catalogue, self._granted, self._own_machine = catalogue, granted, own_machine

    def configured(self, arm: Arm) -> tuple[Arm, Agent]:
        """Return an arm as it is run, and its agent with all options applied; computed once for all tasks."""
        catalogue = self._catalogue
        name = agent_reference(catalogue, arm.agent) if self._own_machine else arm.agent
        options = {**arm.options, **({"model": arm.model} if arm.model is not None else {})}
        if PRESET in options:
            options = without_preset(catalogue.agent(name), options)
        agent = catalogue.agent(name, options)
        if not self._own_machine:
            _check_served(agent)
        grants, network = self._granted(agent, arm.grants, arm.network)
        return arm.model_copy(update={"options": options, "grants": grants, "network": network}), agent

    def plan(self, name: str, arm: Arm, agent: Agent) -> RunPlan:
        """Return the plan of an arm's run on a task, with seed 0."""
        catalogue, variant = self._catalogue, f"{name}+{arm.variant}" if arm.variant else name
        task = imported(catalogue, variant) if self._own_machine else catalogue.task(variant)
        agent = placed(agent, task)
        check_metric(catalogue, task)
        network = arm.network or agent.network
        grants = self._grants(name, agent, arm, network)
        limits = _limits(agent.limits, arm.limits)
        if limits.dev_scores and task.inner is None:
            raise NotFound(
                f"{task.id} has no rows held out from its training data, so agents can't get development scores.",
                hint="Use the variant `+dev` of a competition with a training and a test table, such as `wine+dev`.",
            )
        sandbox = self._sandbox(agent, arm.sandbox, network=network, gpus=limits.gpus, hosts=bool(grants.hosts))
        if network == "gateway" and not catalogue.hook("mleredux_open_gateway").get_hookimpls():
            raise NotFound("No LLM gateway is installed.", hint="Install one: `pip install mleredux-gateway`.")
        budgets = (limits.llm_calls, limits.llm_tokens, limits.llm_cost_usd)
        if limits.on_budget == "stop" and (network != "gateway" or budgets == (None, None, None)):
            raise MlereduxError(
                f"The limit on_budget has no effect on {agent.id}: "
                + ("it has no LLM budget." if network == "gateway" else "its LLM calls, if any, are not counted."),
                hint="Use it with `--network gateway`, and with `--llm-calls`, `--llm-tokens` or `--llm-cost`.",
            )
        return RunPlan(
            task=task.id,
            agent=agent.reference or agent.id,
            sandbox=sandbox,
            seed=0,
            limits=limits,
            network=network,
            grants=grants,
            options=arm.options,
            obfuscated=arm.obfuscated,
            verify=bool(arm.verify),
            context=arm.contexts.get(name, arm.contexts.get("*")),
        )

    def _grants(self, task: str, agent: Agent, arm: Arm, network: Network) -> Grants:
        """Return the agent's grants, after checking that all its requests are granted and that it can use its tools.

        `{task}` in the path of a tool stands for the task.
        """
        grants = arm.grants
        if self._own_machine:
            tools = tuple(absolute(name.replace("{task}", task)) for name in grants.tools)
            grants = grants.model_copy(update={"tools": tools})
        elif paths := [name for name in grants.tools if is_path(name)]:
            raise NotGranted(f"{paths[0]} is a path on another machine.", hint="Use tools that are installed there.")
        variables = (*grants.variables, *requests_of(agent).variables)
        protected = protected_variables(self._catalogue) if variables else ()
        check_grants(agent, grants, arm.network, protected)
        if self._own_machine and not is_foreign(agent):  # the requests of others are listed, with "not set"
            check_variables(agent, variables, protected)
        if arm.network is None and not is_foreign(agent):
            grants = grants.model_copy(update={"hosts": tuple(dict.fromkeys((*agent.hosts, *grants.hosts)))})
        check_tools(agent, find_tools(self._catalogue, grants.tools), grants, network)
        return grants

    def _sandbox(self, agent: Agent, name: str | None, **needs: Any) -> str:
        """Return the requested sandbox, or the best sandbox that meets the agent's requirements."""
        catalogue, installed = self._catalogue, self._catalogue.capabilities()
        if name is not None and name not in installed:
            catalogue.sandbox(name)  # names the available sandboxes, or why this one can't be used
        if self._own_machine:
            return choose_here(catalogue, agent, installed, name, **needs)
        return choose(agent, installed, name, **needs)


def _check_served(agent: Agent) -> None:
    """Check that an agent can be run on a machine that is not its user's own."""
    if "answers" in agent.needs:
        raise NotGranted(
            f"Agent {agent.id} submits the answers of tasks, so it only runs on its user's own machine.",
            hint="Run it without --server, with the task's package installed.",
        )
    if "person" in agent.needs:
        raise NotGranted(
            f"Agent {agent.id} waits for user input, but a server has no user at a terminal.",
            hint="Work on the task on your own machine.",
        )


def _limits(default: Limits, requested: PlanLimits) -> Limits:
    """Apply requested limits to the agent's limits; only defaults are reduced to the machine's resources."""
    from mleredux._core.sandboxes.slots import machine  # needs psutil

    limits = requested.model_dump(exclude_none=True)
    if not limits.keys() >= {"cpus", "memory_mb"}:
        has = machine()
        limits = {"cpus": min(default.cpus, has.cpus), "memory_mb": min(default.memory_mb, has.memory_mb), **limits}
    return checked_limits(Limits, {**default.model_dump(), **limits})


def choose_here(
    catalogue: Catalogue, agent: Agent, installed: Mapping[str, Capabilities], requested: str | None, **run: Any
) -> str:
    """Choose among the working sandboxes as `choose` does; one without isolation only if the agent permits it.

    Raises:
        MlereduxError: The requested sandbox can't run the agent, or no sandbox can.
        SandboxError: No sandbox that can run the agent works on this machine.
    """
    free = _without_isolation(agent) if agent.unisolated != "never" else agent
    open_ones = [name for name in fitting(needs_of(free, **run), installed) if not installed[name].isolated]
    if requested is not None:
        chosen = [requested if requested in open_ones else choose(agent, installed, requested, **run)]
    elif agent.unisolated == "first" and open_ones:
        return open_ones[0]
    else:
        chosen = fitting(needs_of(agent, **run), installed)
        if agent.unisolated == "fallback":
            chosen = [*chosen, *(name for name in open_ones if name not in chosen)]
    if not chosen:
        try:
            choose(agent, installed, None, **run)
        except MlereduxError as error:
            raise type(error)(error.message, hint=_or_open(error.hint, open_ones)) from None
    for name in chosen:
        if problem_of(catalogue, name) is None:
            return name
    problem = problem_of(catalogue, chosen[0])
    assert problem is not None
    raise SandboxError(problem.message, hint=_or_open(problem.remedy, open_ones))


def other_sandboxes(plan: RunPlan, catalogue: Catalogue) -> tuple[str, ...]:
    """Return all sandboxes that can execute a run, best first."""
    agent = placed(catalogue.agent(plan.agent, plan.options), catalogue.task(plan.task))
    needs = needs_of(agent, network=plan.network, gpus=plan.limits.gpus, hosts=bool(plan.grants.hosts))
    return tuple(fitting(needs, catalogue.capabilities()))


def fallback_reason(catalogue: Catalogue, agent: str, sandbox: str) -> str | None:
    """Return why the agent is not isolated as it should be, if `choose_here` found no working isolated sandbox."""
    declared = catalogue.agent(agent)
    if declared.unisolated != "fallback" or catalogue.sandbox(sandbox).capabilities.isolated:
        return None
    broken = [problem.message for _, problem in _checked.values() if problem is not None]
    return broken[0] if broken else "No isolated sandbox is installed."


def _or_open(hint: str | None, open_ones: list[str]) -> str | None:
    """Return the hint, extended by how to run the agent without isolation if that is possible."""
    if not open_ones:
        return hint
    other = f"Or add `--sandbox {open_ones[0]}`, which runs the agent on this machine without isolation."
    return f"{hint or ''} {other}".strip()


def _without_isolation(agent: Agent) -> Agent:
    """Return the agent with its requirements for running without isolation, with the programs of this machine."""
    build = agent.build
    if build.image is None and build.context is None:
        build = build.model_copy(update={"debian": (), "npm": ()})
    return agent.model_copy(update={"isolated": False, "build": build})


def problem_of(catalogue: Catalogue, name: str) -> Finding | None:
    """Return the reason why a sandbox does not work on this machine at all, or None if it does."""
    now = time.monotonic()
    if name not in _checked or now - _checked[name][0] > _CHECK_SECONDS:
        try:
            findings = list(catalogue.sandbox(name).check())
        except MlereduxError as error:
            findings = [Finding(name, False, error.message, error.hint)]
        broken = next((finding for finding in findings if not finding.ok), None)
        _checked[name] = now, None if any(finding.ok for finding in findings) else broken
    return _checked[name][1]
