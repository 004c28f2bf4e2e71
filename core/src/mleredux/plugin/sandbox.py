"""TODO sandbox"""

from __future__ import annotations

from mleredux._core.capabilities import Capabilities, Needs, choose, fitting, needs_of
from mleredux._core.protocols import BuildRequest, Built, Exit, Finding, Handle, Launch, Layout, Usage

__all__ = [
    "BuildRequest",
    "Built",
    "Capabilities",
    "Exit",
    "Finding",
    "Handle",
    "Launch",
    "Layout",
    "Needs",
    "Usage",
    "choose",
    "fitting",
    "needs_of",
]
