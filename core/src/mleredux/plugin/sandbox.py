"""TODO sandbox"""

from __future__ import annotations

from mleredux._core.protocols import BuildRequest, Built, Exit, Finding, Handle, Launch, Layout, Usage

__all__ = [
    "BuildRequest",
    "Built",
    "Exit",
    "Finding",
    "Handle",
    "Launch",
    "Layout",
    "Usage",
]
