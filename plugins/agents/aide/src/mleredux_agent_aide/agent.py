"""Declaration of the agent."""

from __future__ import annotations

from mleredux.plugin.agent import Build, Limits
from mleredux_agents import AgentOptions, llm_agent
from pydantic import Field

from mleredux_agent_aide.reader import read_rollout

AIDE = "aideml==0.2.2"
"""AIDE is installed without its dependencies: it declares PyTorch and forty other libraries that it does not import."""
REQUIRED = (
    "anthropic==2.12.0",
    "backoff==2.2.1",
    "black==26.10.1",
    "coolname==5.0.0",
    "dataclasses-json==0.6.7",
    "funcy==2.1",
    "genson==1.4.0",
    "humanize==4.17.0",
    "igraph==1.0.0",
    "jsonschema==4.26.0",
    "numpy>=2,<3",
    "omegaconf==2.4.0",
    "openai==3.54.0",
    "pandas==3.1.1",
    "python-dotenv==1.2.4",
    "rich==15.0.0",
    "shutup==0.3.0",
)
"""Packages that aideml does import."""


class Options(AgentOptions):
    """Options with AIDE's own defaults."""

    code_model: str = Field(default="o4-mini", min_length=1)
    feedback_model: str = Field(default="gpt-4.1-mini", min_length=1)
    code_temperature: float | None = Field(default=0.5, ge=0, le=2)
    feedback_temperature: float | None = Field(default=0.5, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    steps: int = Field(default=20, ge=1, le=10_000)
    exec_timeout: int = Field(default=3600, ge=1)
    drafts: int = Field(default=5, ge=1)
    debug_prob: float = Field(default=0.5, ge=0, le=1)
    max_debug_depth: int = Field(default=3, ge=0)
    folds: int = Field(default=5, ge=1)
    data_preview: bool = True


agent = llm_agent(
    id="aide",
    title="AIDE: a language model drafts, fixes and improves solutions in a tree search",
    driver="mleredux_agent_aide.driver",
    options=Options,
    build=Build(python=REQUIRED, python_alone=(AIDE,)),
    reader=read_rollout,
    limits=Limits(time_limit=24 * 3600, cpus=2, memory_mb=8192),
)
