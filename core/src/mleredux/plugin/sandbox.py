"""For authors of sandboxes: where agents are built and run, and how sandboxes are matched with agents.

A sandbox is an object with the attributes and methods of `Sandbox`, which a plugin registers; it says what it can do::

    from mleredux.plugin.sandbox import Capabilities

    capabilities = Capabilities(isolated=True, networks=("none",))
"""

from __future__ import annotations

from mleredux._core.capabilities import Capabilities, Needs, choose, fitting, needs_of
from mleredux._core.protocols import BuildRequest, Built, Exit, Finding, Handle, Launch, Layout, Sandbox, Usage

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
    "Sandbox",
    "Usage",
    "choose",
    "fitting",
    "needs_of",
]
