"""The agent's declaration."""

from __future__ import annotations

from mleredux.plugin.agent import Agent, Build, Limits

agent = Agent(
    id="baseline",
    title="Cross-validated scikit-learn models, blended; no LLM",
    command=("python", "-m", "mleredux_agent_baseline"),
    build=Build(
        python=("pandas>=2.2,<4", "scikit-learn>=1.5,<2", "skrub>=0.6,<1", "pillow>=10"),
        packages=("mleredux_agent_baseline",),
    ),
    limits=Limits(time_limit=1800, cpus=2, memory_mb=4096),
    options={"search_seconds": 600, "max_rows": 200_000, "folds": 5, "candidates": 100},
    tags=("no-llm",),
)
