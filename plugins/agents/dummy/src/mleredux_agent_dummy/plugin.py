"""Plugin that registers the agent."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import hookimpl
from mleredux.plugin.agent import Agent, Build, Limits

mleredux_contract = 2

dummy = Agent(
    id="dummy",
    title="Submits the sample submission",
    command=("python", "-m", "mleredux_agent_dummy"),
    build=Build(packages=("mleredux_agent_dummy", "mleredux_agentkit")),
    limits=Limits(time_limit=120, cpus=1, memory_mb=512),
    tags=("no-llm",),
)


@hookimpl
def mleredux_register_agents() -> Iterable[Agent]:
    """Return the agent."""
    return [dummy]
