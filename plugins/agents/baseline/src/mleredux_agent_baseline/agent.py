"""Declaration of the agent."""

from __future__ import annotations

from mleredux.plugin.agent import Agent, Build, Limits

from mleredux_agent_baseline.settings import OPTIONS

agent = Agent(
    id="baseline",
    title="Cross-validated scikit-learn models, blended; no LLM",
    command=("python", "-m", "mleredux_agent_baseline"),
    build=Build(
        python=("pandas>=2.2,<4", "scikit-learn>=1.5,<2", "skrub>=0.6,<1", "pillow>=10"),
        packages=("mleredux_agent_baseline", "mleredux_agentkit"),
    ),
    limits=Limits(time_limit=1800, cpus=2, memory_mb=4096),
    options=dict(OPTIONS),
    tags=("no-llm",),
)
