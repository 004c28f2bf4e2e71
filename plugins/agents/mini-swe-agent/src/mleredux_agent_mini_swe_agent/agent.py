"""The agent's declaration."""

from __future__ import annotations

from typing import Any

from mleredux.plugin.agent import Agent, Build, Limits, libraries, read_options

from mleredux_agent_mini_swe_agent.options import Options
from mleredux_agent_mini_swe_agent.reader import read_rollout

MINI = "mini-swe-agent==2.4.6"
"""Installed alone: it declares the libraries of its terminal and of its benchmarks too."""
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
"""What its agent, model and environment import."""


def configure(options: dict[str, Any]) -> Agent:
    """The agent with the libraries that its options ask for.

    Raises:
        MlereduxError: An option makes no sense.
    """
    return agent.model_copy(update={"build": _build(read_options("mini-swe-agent", Options, options).libraries)})


def _build(asked: str) -> Build:
    wanted = libraries(asked)
    return Build(
        python=(*REQUIRED, *wanted.python),
        python_alone=(MINI,),
        debian=wanted.debian,
        packages=("mleredux_agent_mini_swe_agent.driver",),
    )


agent = Agent(
    id="mini-swe-agent",
    title="mini-swe-agent: a language model with a shell",
    command=("python", "-m", "mleredux_agent_mini_swe_agent.driver"),
    build=_build(Options().libraries),
    limits=Limits(time_limit=6 * 3600, cpus=2, memory_mb=8192),
    network="gateway",
    options=Options().model_dump(),
    configure=configure,
    isolated=True,
    rollout_reader=read_rollout,
    tags=("llm",),
)
