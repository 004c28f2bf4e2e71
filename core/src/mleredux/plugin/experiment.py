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

from mleredux._core.data.debug_sample import is_sample as is_sample
from mleredux._core.data.debug_sample import sample_name as sample_name
from mleredux._core.data.debug_sample import sampled as sampled
from mleredux._core.planning.names import agent_reference as agent_reference
from mleredux._core.planning.names import resolved as resolved
from mleredux._core.planning.plans import other_sandboxes as other_sandboxes
from mleredux._core.planning.plans import plan as plan
from mleredux.models import RunPlan as RunPlan
from mleredux.models.experiment import Design as Design
from mleredux.models.experiment import Plan as Plan
from mleredux.models.experiment import Stop as Stop
from mleredux.models.request import SET as SET
from mleredux.models.request import Arm as Arm
from mleredux.models.request import Cell as Cell
from mleredux.models.request import PlanLimits as PlanLimits
from mleredux.models.request import Request as Request
from mleredux.models.request import Seed as Seed
from mleredux.models.units import MAX_SEED as MAX_SEED
