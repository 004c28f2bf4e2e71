"""For code that plans runs: tasks with arms and seeds, in one request.

`plan` turns a request into runs that can be created, each validated. The plan of an experiment is a file, or an object
with the same fields, and also has a request::

    from mleredux.plugin.command import current
    from mleredux.plugin.experiment import Plan, Request, plan

    runs = plan(Request.single("digits", "baseline", seed=1), current(), own_machine=True)

    design = {"name": "v2-vs-v1", "tasks": ["digits", "set:starter"], "seeds": [0, 1, 2]}
    arms = {"v1": {"agent": "dummy"}, "v2": {"agent": "baseline"}}
    runs = plan(Plan.model_validate({"experiment": design, "arms": arms}).request, current(), own_machine=True)
"""

from __future__ import annotations

from mleredux._core.data.debug_sample import is_sample, sample_name, sampled
from mleredux._core.planning.names import agent_reference, resolved
from mleredux._core.planning.plans import plan
from mleredux._core.planning.sandboxes import other_sandboxes
from mleredux.models import RunPlan
from mleredux.models.experiment import Design, Plan, Stop
from mleredux.models.request import SET, Arm, Cell, PlanLimits, Request, Seed
from mleredux.models.units import MAX_SEED

__all__ = [
    "MAX_SEED",
    "SET",
    "Arm",
    "Cell",
    "Design",
    "Plan",
    "PlanLimits",
    "Request",
    "RunPlan",
    "Seed",
    "Stop",
    "agent_reference",
    "is_sample",
    "other_sandboxes",
    "plan",
    "resolved",
    "sample_name",
    "sampled",
]
