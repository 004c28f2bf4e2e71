"""Declaration of the agent."""

from __future__ import annotations

from mleredux import Agent, Build, Limits

agent = Agent(
    id="nearest-rows",
    version="1",
    title="Nearest neighbors; leave-one-out validation chooses their number",
    command=("python", "-m", "nearest_rows"),
    # Copied into the image for `--sandbox docker`; add its dependencies to `python=("name>=1,<2",)`.
    build=Build(packages=("nearest_rows", "mleredux_agentkit")),
    limits=Limits(time_limit=600, cpus=1, memory_mb=1024),
    options={"neighbours": [1, 3, 5, 9, 15], "max_rows": 1500},
    tags=("no-llm",),
)
