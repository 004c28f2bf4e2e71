"""Declaration of the agent."""

from __future__ import annotations

from mleredux.plugin.agent import Build, Limits
from mleredux_agents import AgentOptions, llm_agent
from pydantic import Field

from mleredux_agent_mlagentbench.reader import read_rollout


class Options(AgentOptions):
    """Options with the names of MLAgentBench's runner, mostly with its defaults."""

    llm_name: str = Field(default="gpt-4.1", min_length=1)
    fast_llm_name: str | None = None
    edit_script_llm_name: str | None = None
    max_steps: int = Field(default=50, ge=1)
    max_retries: int = Field(default=5, ge=1)
    max_tokens: int = Field(default=4000, ge=1)
    edit_script_llm_max_tokens: int = Field(default=4000, ge=1)
    max_steps_in_context: int = Field(default=3, ge=1)
    max_observation_steps_in_context: int = Field(default=3, ge=1)
    temperature: float | None = Field(default=0.5, ge=0, le=2)
    retrieval: bool = False
    llm_retries: int = Field(default=5, ge=0)
    source: str | None = Field(default=None, pattern=r"^https://\S+\.(tar\.gz|zip|whl)(#\S*)?$")
    """The URL from which pip installs MLAgentBench: the archive of a commit. None if the base image contains it."""


agent = llm_agent(
    id="mlagentbench",
    title="MLAgentBench's ResearchAgent; install MLAgentBench with -O source=URL or in the base image",
    driver="mleredux_agent_mlagentbench.driver",
    options=Options,
    build=lambda options: Build(python_alone=tuple(filter(None, ("dacite==1.9.2", options.source)))),
    reader=read_rollout,
    limits=Limits(time_limit=5 * 3600, cpus=2, memory_mb=8192),
)
