"""For authors of agents: the declaration of an agent, its build and its limits.

An agent is a declaration; the program itself runs in a sandbox, where mleredux is not installed::

    from mleredux.plugin.agent import Agent, Limits

    agent = Agent(
        id="my-agent",
        title="Submits the sample",
        command=("python", "-m", "my_package"),
        limits=Limits(time_limit=600),
    )
"""

from __future__ import annotations

from mleredux._core.agent_builders import AgentOptions, CliOptions, CommandRecipe, cli_agent, install_parts, llm_agent
from mleredux._core.agent_options import Libraries, libraries, read_options
from mleredux._core.loans import GIT_TOKEN, lent
from mleredux._core.places import split_place, written_place
from mleredux._core.plugins.summaries import check_and_summarise as summary_of
from mleredux._core.protocols import Launch, Session
from mleredux.models import Agent, AgentFolder, Attempts, Build, Grants, Limits, Outcome, Smoke
from mleredux.models.agent import Network
from mleredux.models.grants import HostName

__all__ = [
    "GIT_TOKEN",
    "Agent",
    "AgentFolder",
    "AgentOptions",
    "Attempts",
    "Build",
    "CliOptions",
    "CommandRecipe",
    "Grants",
    "HostName",
    "Launch",
    "Libraries",
    "Limits",
    "Network",
    "Outcome",
    "Session",
    "Smoke",
    "cli_agent",
    "install_parts",
    "lent",
    "libraries",
    "llm_agent",
    "read_options",
    "split_place",
    "summary_of",
    "written_place",
]
