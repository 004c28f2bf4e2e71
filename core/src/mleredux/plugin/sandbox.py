"""For authors of sandboxes, which build and run agents, and declare which agents they support.

A sandbox is an object with the attributes and methods of `Sandbox`, registered by a plugin; it declares its
capabilities::

    from mleredux.plugin.sandbox import Capabilities

    capabilities = Capabilities(isolated=True, networks=("none",))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux._core.disuse import note_use as note_use
from mleredux._core.plugins.capabilities import Capabilities as Capabilities
from mleredux._core.plugins.capabilities import choose as choose
from mleredux._core.plugins.capabilities import fitting as fitting
from mleredux._core.plugins.capabilities import needs_of as needs_of
from mleredux._core.protocols import BuildRequest as BuildRequest
from mleredux._core.protocols import Built as Built
from mleredux._core.protocols import Discarding as Discarding
from mleredux._core.protocols import Exit as Exit
from mleredux._core.protocols import Finding as Finding
from mleredux._core.protocols import Handle as Handle
from mleredux._core.protocols import Launch as Launch
from mleredux._core.protocols import Layout as Layout
from mleredux._core.protocols import Sandbox as Sandbox
from mleredux._core.protocols import Usage as Usage
from mleredux.models.imports import on_first_use as _on_first_use

if TYPE_CHECKING:
    from mleredux._core.sandboxes.launched import attach_launcher as attach_launcher
    from mleredux._core.sandboxes.launched import start_launcher as start_launcher
    from mleredux._core.sandboxes.launched import sweep_launchers as sweep_launchers

_LAUNCHED = {"mleredux._core.sandboxes.launched": "attach_launcher start_launcher sweep_launchers"}
"""Names by module; each is imported on first use, because they need psutil."""
__getattr__ = _on_first_use(__name__, _LAUNCHED)[0]
