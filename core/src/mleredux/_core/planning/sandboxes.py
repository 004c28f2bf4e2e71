"""Choose a sandbox for a run on its user's own machine: one that works, and is isolated if the agent requires it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.capabilities import Capabilities, choose, fitting, needs_of
from mleredux._core.protocols import Finding
from mleredux._core.sandboxes.task_images import placed
from mleredux.errors import MlereduxError, SandboxError
from mleredux.models import Agent, RunPlan

_CHECK_SECONDS = 10.0
_checked: dict[str, tuple[float, Finding | None]] = {}


def choose_here(
    catalogue: Catalogue, agent: Agent, installed: Mapping[str, Capabilities], asked: str | None, **run: Any
) -> str:
    """Choose a sandbox as `choose` does, but only among those that work; sandboxes without isolation only if the agent
    permits them.

    Raises:
        MlereduxError: The requested sandbox can't run the agent, or no sandbox can.
        SandboxError: No sandbox that can run the agent works on this machine.
    """
    free = _without_isolation(agent) if agent.unisolated != "never" else agent
    open_ones = [name for name in fitting(needs_of(free, **run), installed) if not installed[name].isolated]
    if asked is not None:
        chosen = [asked if asked in open_ones else choose(agent, installed, asked, **run)]
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


def fell_back(catalogue: Catalogue, agent: str, sandbox: str) -> str | None:
    """Return why the agent is not isolated as it should be, if `choose_here` found no working isolated sandbox."""
    found = catalogue.agent(agent)
    if found.unisolated != "fallback" or catalogue.sandbox(sandbox).capabilities.isolated:
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
    """Return why a sandbox does not work on this machine at all, or None if it does."""
    now = time.monotonic()
    if name not in _checked or now - _checked[name][0] > _CHECK_SECONDS:
        try:
            findings = list(catalogue.sandbox(name).check())
        except MlereduxError as error:
            findings = [Finding(name, False, error.message, error.hint)]
        broken = next((one for one in findings if not one.ok), None)
        _checked[name] = now, None if any(one.ok for one in findings) else broken
    return _checked[name][1]
