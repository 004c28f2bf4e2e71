"""For code that plans experiments: matrices of tasks, arms and seeds.

A plan is a file, or made of the same fields; services and commands expand it alike::

    from mleredux.plugin.experiment import Plan

    design = {"name": "v2-vs-v1", "tasks": ["digits", "set:starter"], "seeds": [0, 1, 2]}
    plan = Plan.model_validate({"experiment": design, "arms": {"v1": {"agent": "dummy"}, "v2": {"agent": "baseline"}}})
    cells = plan.cells(["digits", "wine"])
"""

from __future__ import annotations

from mleredux._core.debug_sample import is_sample
from mleredux._core.own_machine import agent_reference
from mleredux._core.plans import plan_cells, plan_of, plan_tasks
from mleredux.models.experiment import Arm, Cell, Design, Plan, PlanLimits, Seed, Stop
from mleredux.models.units import MAX_SEED

__all__ = [
    "MAX_SEED",
    "Arm",
    "Cell",
    "Design",
    "Plan",
    "PlanLimits",
    "Seed",
    "Stop",
    "agent_reference",
    "is_sample",
    "plan_cells",
    "plan_of",
    "plan_tasks",
]
