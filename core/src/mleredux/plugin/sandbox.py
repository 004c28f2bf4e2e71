"""For authors of sandboxes, which build and run agents, and declare which agents they support.

A sandbox is an object with the attributes and methods of `Sandbox`, registered by a plugin; it declares its
capabilities::

    from mleredux.plugin.sandbox import Capabilities

    capabilities = Capabilities(isolated=True, networks=("none",))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mleredux._core.disuse import note_use
from mleredux._core.plugins.capabilities import Capabilities, choose, fitting, needs_of
from mleredux._core.protocols import (
    BuildRequest,
    Built,
    Discarding,
    Exit,
    Finding,
    Handle,
    Launch,
    Layout,
    Sandbox,
    Usage,
)

if TYPE_CHECKING:
    from mleredux._core.sandboxes.launched import attach_launcher, start_launcher, sweep_launchers

__all__ = [
    "BuildRequest",
    "Built",
    "Capabilities",
    "Discarding",
    "Exit",
    "Finding",
    "Handle",
    "Launch",
    "Layout",
    "Sandbox",
    "Usage",
    "attach_launcher",
    "choose",
    "fitting",
    "needs_of",
    "note_use",
    "start_launcher",
    "sweep_launchers",
]


def __getattr__(name: str) -> Any:
    """Import launcher names on first use, because they need psutil."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mleredux._core.sandboxes import launched

    return getattr(launched, name)
