"""The agent's declaration."""

from __future__ import annotations

from mleredux.plugin.agent import Agent, Build, Limits

from mleredux_agent_automl.settings import OPTIONS

agent = Agent(
    id="automl",
    title="Pipeline search with Optuna that applies findings of technique tasks; no LLM",
    command=("python", "-m", "mleredux_agent_automl"),
    build=Build(
        python=("pandas>=2.2,<4", "scikit-learn>=1.5,<2", "skrub>=0.6,<1", "pillow>=10", "optuna>=5,<6"),
        packages=("mleredux_agent_automl", "mleredux_agent_baseline", "mleredux_agentkit"),
    ),
    limits=Limits(time_limit=1800, cpus=2, memory_mb=4096),
    options=dict(OPTIONS),
    presets={
        "fast": {"trials": 15, "search_seconds": 60, "folds": 3},
        "thorough": {"trials": 400, "search_seconds": 1500},
    },
    tags=("no-llm",),
)
