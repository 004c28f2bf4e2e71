"""For authors of gateways: the metered access of a run to LLMs. For checks of runs: a model that judges them.

The hook `mleredux_open_gateway` returns an object with the methods of `Gateway`, which provides the agent's environment
variables before the agent starts, and its usage afterwards. `open_judge(run, model, calls=2, cost_usd=0.1)` opens the
installed gateway for a model that judges runs, whose method `ask` returns its answer::

    from mleredux.plugin.gateway import Gateway, open_judge
"""

from __future__ import annotations

from mleredux._core.judge import BudgetExhausted, Judge, open_judge
from mleredux._core.planning.grants import includes_model
from mleredux._core.protocols import Gateway

__all__ = ["BudgetExhausted", "Gateway", "Judge", "includes_model", "open_judge"]
