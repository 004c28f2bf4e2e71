"""TODO agent"""

from __future__ import annotations

from mleredux._core.agent_options import Libraries, libraries, read_options
from mleredux._core.models import Agent, Attempts, Build, Limits, Outcome, Smoke
from mleredux._core.models.agent import Network
from mleredux._core.plugins.summaries import check_and_summarise
from mleredux._core.protocols import Launch, Session

__all__ = [
    "Agent",
    "Attempts",
    "Build",
    "Launch",
    "Libraries",
    "Limits",
    "Network",
    "Outcome",
    "Session",
    "Smoke",
    "check_and_summarise",
    "libraries",
    "read_options",
]
