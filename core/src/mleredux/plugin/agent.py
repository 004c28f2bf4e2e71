"""TODO agent"""

from __future__ import annotations

from mleredux._core.agent_options import Libraries, libraries, read_options
from mleredux._core.models import Agent, Build, Limits, Smoke
from mleredux._core.models.agent import Network
from mleredux._core.plugins.summaries import check_and_summarise

__all__ = [
    "Agent",
    "Build",
    "Libraries",
    "Limits",
    "Network",
    "Smoke",
    "check_and_summarise",
    "libraries",
    "read_options",
]
