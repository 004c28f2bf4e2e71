"""The agent's declaration."""

from __future__ import annotations

from mleredux.plugin.agent import Agent, Build, Limits

agent = Agent(
    id="analyst",
    title="Statistics and rules of thumb for technique tasks; no LLM",
    command=("python", "-m", "mleredux_agent_analyst"),
    build=Build(python=("pandas>=2.2,<4", "scipy>=1.11,<2"), packages=("mleredux_agent_analyst", "mleredux_agentkit")),
    limits=Limits(time_limit=600, cpus=1, memory_mb=4096),
    options={"thorough": False},
    tags=("no-llm", "technique"),
)
