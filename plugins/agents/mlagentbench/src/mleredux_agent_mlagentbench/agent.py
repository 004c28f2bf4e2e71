"""The agent's declaration."""

from __future__ import annotations

from typing import Any

from mleredux.plugin.agent import Agent, Build, Limits, libraries, read_options

from mleredux_agent_mlagentbench.options import Options
from mleredux_agent_mlagentbench.reader import read_rollout


def configure(options: dict[str, Any]) -> Agent:
    """The agent with the libraries that its options ask for.

    Raises:
        MlereduxError: An option makes no sense.
    """
    return agent.model_copy(update={"build": _build(read_options("mlagentbench", Options, options))})


def _build(options: Options) -> Build:
    wanted = libraries(options.libraries)
    return Build(
        python=wanted.python,
        python_alone=("dacite==1.9.2", *([options.source] if options.source else [])),
        debian=wanted.debian,
        packages=("mleredux_agent_mlagentbench.driver",),
    )


agent = Agent(
    id="mlagentbench",
    title="MLAgentBench's ResearchAgent; MLAgentBench itself comes with -o source=URL, or the base image",
    command=("python", "-m", "mleredux_agent_mlagentbench.driver"),
    build=_build(Options()),
    limits=Limits(time_limit=5 * 3600, cpus=2, memory_mb=8192),
    network="gateway",
    options=Options().model_dump(),
    configure=configure,
    isolated=True,
    rollout_reader=read_rollout,
    tags=("llm",),
)
