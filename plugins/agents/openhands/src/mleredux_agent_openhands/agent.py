"""Declaration of the agent."""

from __future__ import annotations

from pathlib import Path

from mleredux.plugin.agent import Build, Limits
from mleredux_agents import AgentOptions, llm_agent
from pydantic import Field

from mleredux_agent_openhands.reader import read_rollout

_LINES = Path(__file__).with_name("requirements.txt").read_text(encoding="utf-8").splitlines()
OPENHANDS = tuple(line for line in _LINES if line and not line.startswith("#"))
"""Installed without further dependencies: of 190 declared packages, OpenHands imports only these if no user interacts
with it.
"""


class Options(AgentOptions):
    """Options with OpenHands' own defaults."""

    model: str = Field(default="gpt-5.6", min_length=1)
    max_iterations: int = Field(default=500, ge=1)
    reminders: int = Field(default=2, ge=0)
    temperature: float | None = Field(default=None, ge=0, le=2)
    reasoning_effort: str | None = "high"
    max_output_tokens: int | None = Field(default=None, ge=1)
    llm_timeout: int = Field(default=300, ge=1)
    llm_retries: int = Field(default=5, ge=0)


agent = llm_agent(
    id="openhands",
    title="OpenHands: a language model with a terminal and an editor",
    driver="mleredux_agent_openhands.driver",
    options=Options,
    build=Build(python_alone=OPENHANDS, debian=("tmux",)),
    reader=read_rollout,
    env={"NO_COLOR": "1", "PYTHON_COLORS": "0"},
    limits=Limits(time_limit=4 * 3600, cpus=2, memory_mb=8192),
)
