"""For authors of gateways: the metered way of a run to language models.

The hook `mleredux_open_gateway` gives an object with the methods of `Gateway`; whoever starts the agent asks it for the
agent's environment before, and for what was used after::

    from mleredux.plugin.gateway import Gateway
"""

from __future__ import annotations

from mleredux._core.protocols import Gateway

__all__ = [
    "Gateway",
]
