"""Plans: the validated request of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mleredux._core.capabilities import choose
from mleredux._core.models import Limits
from mleredux._core.plugins import Catalogue
from mleredux._core.sandboxes.slots import machine
from mleredux.errors import NotFound


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
) -> dict[str, Any]:
    """Validate the request of a run before creating it; return fields for `RunStore.create`.

    Raises:
        NotFound: There is no such task, agent or sandbox.
        MlereduxError: The agent has no such option, or needs what the sandbox lacks.
    """
    found_task, found_agent = catalogue.task(task), catalogue.agent(agent, options or {})
    wanted = network or found_agent.network
    run_limits = _limits(found_agent.limits, dict(limits or {}))
    installed = catalogue.capabilities()
    if sandbox is not None and sandbox not in installed:
        catalogue.sandbox(sandbox)  # reports available sandboxes, or why this one can't be used
    chosen = choose(found_agent, installed, sandbox, network=wanted, gpus=run_limits.gpus)
    if wanted == "gateway" and not catalogue.hook("mleredux_open_gateway").get_hookimpls():
        raise NotFound("No LLM gateway is installed.", hint="Install one: `pip install mleredux-gateway`.")
    return {
        "task": found_task.id,
        "agent": found_agent.reference or found_agent.id,
        "sandbox": chosen,
        "seed": seed,
        "limits": run_limits,
        "network": wanted,
        "options": dict(options or {}),
    }


def _limits(default: Limits, asked: dict[str, Any]) -> Limits:
    """Apply requested limits to the agent's; only defaults are reduced to the machine's resources."""
    has = machine()
    fitting = {
        "cpus": min(default.cpus, has.cpus),
        "memory_mb": min(default.memory_mb, has.memory_mb),
        **asked,
    }
    return Limits.model_validate({**default.model_dump(), **fitting})
