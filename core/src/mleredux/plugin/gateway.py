"""For authors of gateways: the metered access of a run to LLMs.

Checks that judge runs with a model open the installed gateway with `open_judge` of the kit `mleredux_rollout`.
The hook `mleredux_open_gateway` returns an object with the methods of `Gateway`, which provides the agent's environment
variables before the agent starts, and its usage afterwards::

    from mleredux.plugin.gateway import Gateway
"""

from __future__ import annotations

from mleredux._core.planning.grants import includes_model as includes_model
from mleredux._core.protocols import Gateway as Gateway
