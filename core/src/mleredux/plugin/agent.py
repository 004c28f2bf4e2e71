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

from mleredux._core.loans import GIT_TOKEN as GIT_TOKEN
from mleredux._core.loans import provided_secrets as provided_secrets
from mleredux._core.moved import moved
from mleredux._core.places import split_place as split_place
from mleredux._core.places import written_place as written_place
from mleredux._core.plugins import summaries as _summaries
from mleredux._core.protocols import Launch as Launch
from mleredux._core.protocols import Session as Session
from mleredux.models import Agent as Agent
from mleredux.models import Build as Build
from mleredux.models import Grants as Grants
from mleredux.models import Limits as Limits
from mleredux.models.agent import HostName as HostName
from mleredux.models.agent import Network as Network

summary_of = _summaries.check_and_summarise
__getattr__ = moved(__name__, "mleredux_agents")
