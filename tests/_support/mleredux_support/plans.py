"""The plan of one run."""

from __future__ import annotations

from typing import Any

from mleredux.plugin.command import Catalogue
from mleredux.plugin.experiment import Request, RunPlan, plan


def plan_of(catalogue: Catalogue, task: str, agent: str, *, own_machine: bool = False, **arm: Any) -> RunPlan:
    """Return the plan of one run; `arm` as for `Request.single`."""
    [planned] = plan(Request.single(task, agent, **arm), catalogue, own_machine=own_machine)
    return planned
