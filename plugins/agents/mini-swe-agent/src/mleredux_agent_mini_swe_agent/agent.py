"""Declaration of the agent."""

from __future__ import annotations

from typing import Literal

from mleredux.plugin.agent import Build
from mleredux_agents import AgentOptions, llm_agent
from pydantic import Field

from mleredux_agent_mini_swe_agent.reader import read_rollout

MINI = "mini-swe-agent==2.4.6"
"""Installed without dependencies: it also declares libraries for its terminal interface and its benchmarks."""
REQUIRED = (
    "jinja2==3.1.6",
    "litellm==1.106.2",
    "mcp==2.3.0",
    "platformdirs==4.14.7",
    "pydantic==2.14.3",
    "python-dotenv==1.2.4",
    "pyyaml==6.0.3",
    "rich==15.0.0",
    "tenacity==9.2.1",
)
"""Packages that its agent, model and environment import."""


class Options(AgentOptions):
    """Options and their defaults."""

    model: str = Field(default="gpt-4.1-mini", min_length=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    steps: int = Field(default=0, ge=0)
    command_timeout: int = Field(default=1800, ge=1)
    actions: Literal["tools", "text"] = "tools"


agent = llm_agent(
    id="mini-swe-agent",
    title="mini-swe-agent: a language model with a shell",
    driver="mleredux_agent_mini_swe_agent.driver",
    options=Options,
    build=Build(python=REQUIRED, python_alone=(MINI,)),
    reader=read_rollout,
)
