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

from mleredux._core.loans import GIT_TOKEN, lent
from mleredux._core.moved import moved
from mleredux._core.places import split_place, written_place
from mleredux._core.plugins.summaries import check_and_summarise as summary_of
from mleredux._core.protocols import Launch, Session
from mleredux.models import Agent, Build, Grants, Limits
from mleredux.models.agent import Network
from mleredux.models.grants import HostName

__all__ = [
    "GIT_TOKEN",
    "Agent",
    "Build",
    "Grants",
    "HostName",
    "Launch",
    "Limits",
    "Network",
    "Session",
    "lent",
    "split_place",
    "summary_of",
    "written_place",
]


_MOVED = {
    "AgentOptions",
    "CliOptions",
    "CommandRecipe",
    "Libraries",
    "cli_agent",
    "install_parts",
    "libraries",
    "llm_agent",
    "read_options",
}
__getattr__ = moved(__name__, "mleredux_agents", _MOVED)
