"""The agent's declaration."""

from __future__ import annotations

from typing import Any

from mleredux.plugin.agent import Agent, Build, Limits, libraries, read_options

from mleredux_agent_aide.options import Options
from mleredux_agent_aide.reader import read_rollout

AIDE = "aideml==0.2.2"
"""Installed alone: it declares PyTorch and forty other libraries, of which it imports none."""
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
"""What aideml does import."""


def configure(options: dict[str, Any]) -> Agent:
    """The agent with the libraries that its options ask for.

    Raises:
        MlereduxError: An option makes no sense.
    """
    return agent.model_copy(update={"build": _build(read_options("aide", Options, options).libraries)})


def _build(asked: str) -> Build:
    wanted = libraries(asked)
    return Build(
        python=tuple(dict.fromkeys((*REQUIRED, *wanted.python))),
        python_alone=(AIDE,),
        debian=wanted.debian,
        packages=("mleredux_agent_aide.driver",),
    )


agent = Agent(
    id="aide",
    title="AIDE: a language model drafts, mends and betters solutions in a tree search",
    command=("python", "-m", "mleredux_agent_aide.driver"),
    build=_build(Options().libraries),
    limits=Limits(time_limit=24 * 3600, cpus=2, memory_mb=8192),
    network="gateway",
    options=Options().model_dump(),
    configure=configure,
    isolated=True,
    rollout_reader=read_rollout,
    tags=("llm",),
)
