"""The agent's declaration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mleredux.plugin.agent import Agent, Build, Limits, libraries, read_options

from mleredux_agent_openhands.options import Options
from mleredux_agent_openhands.reader import read_rollout

_LINES = Path(__file__).with_name("requirements.txt").read_text(encoding="utf-8").splitlines()
OPENHANDS = tuple(line for line in _LINES if line and not line.startswith("#"))
"""Installed alone: OpenHands declares 190 packages, of which it imports these when it works by itself."""


def configure(options: dict[str, Any]) -> Agent:
    """The agent with the libraries that its options ask for.

    Raises:
        MlereduxError: An option makes no sense.
    """
    return agent.model_copy(update={"build": _build(read_options("openhands", Options, options).libraries)})


def _build(asked: str) -> Build:
    wanted = libraries(asked)
    return Build(
        python=wanted.python,
        python_alone=OPENHANDS,
        debian=("tmux", *wanted.debian),
        packages=("mleredux_agent_openhands.driver",),
    )


agent = Agent(
    id="openhands",
    title="OpenHands: a language model with a terminal and an editor",
    command=("python", "-m", "mleredux_agent_openhands.driver"),
    build=_build(Options().libraries),
    env={"NO_COLOR": "1", "PYTHON_COLORS": "0"},
    limits=Limits(time_limit=4 * 3600, cpus=2, memory_mb=8192),
    network="gateway",
    options=Options().model_dump(),
    configure=configure,
    isolated=True,
    rollout_reader=read_rollout,
    tags=("llm",),
)
