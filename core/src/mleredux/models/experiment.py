"""Experiments: the plan of a matrix of runs, as written by a user."""

from __future__ import annotations

import itertools
import math
from typing import Any, Literal

from pydantic import Field, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from mleredux.models.base import Model
from mleredux.models.request import Arm, Name, Order, PlanLimits, Request, Seed

MOST_ARMS = 1000
"""Maximum number of arms in a plan, counting every combination of grid values."""


class Design(Model):
    """The question of an experiment, its tasks and its seeds: the table `experiment` of a plan."""

    name: Name
    """The name of the experiment, unique in its runs directory or project."""
    question: str = Field(default="", max_length=2000)
    """The question that the experiment answers, printed with its results."""
    primary: str = "any_medal"
    """The primary measure, which decides the comparison."""
    margin: float = Field(default=0, ge=0, allow_inf_nan=False)
    """The smallest difference that matters, in the unit of the primary measure."""
    alpha: float = Field(default=0.05, gt=0, lt=1)
    """The significance level: the probability of a false positive."""
    analysis: Literal["paired", "equivalence"] = "paired"
    """`paired` tests whether arms differ; `equivalence` tests whether they differ by less than the margin."""
    tasks: tuple[str, ...] = Field(min_length=1)
    """Ids of tasks; sets of tasks are written as `set:lite`."""
    seeds: tuple[Seed, ...] = Field(default=(0,), min_length=1)
    """Seeds; each task is run with each arm and each seed."""
    order: Order = "interleaved"
    """`interleaved`: each task is run with all arms before the next task, so that load and drift affect all arms
    alike.
    """

    @model_validator(mode="after")
    def _check_margin(self) -> Design:
        if self.analysis == "equivalence" and not self.margin:
            raise ValueError('analysis = "equivalence" requires a margin above 0')
        return self


class Stop(Model):
    """When to stop starting new runs: budgets and the stopping rule."""

    max_cost_usd: float | None = Field(default=None, gt=0)
    """Total cost of all runs, according to the gateway's prices."""
    max_hours: float | None = Field(default=None, gt=0)
    """Total time of all runs, in hours."""
    rule: Literal["fixed", "sequential"] = "fixed"
    """`sequential`: stop as soon as the comparison is decided by a test that stays valid when results are checked
    repeatedly.
    """


class Plan(Model):
    """The plan of an experiment: each task is run with each arm and each seed."""

    experiment: Design
    """The question, the tasks and the seeds."""
    limits: PlanLimits = PlanLimits()
    """Limits of all arms."""
    arms: dict[Name, Arm] = Field(min_length=1, max_length=MOST_ARMS)
    """The configurations to compare, by name."""
    stop: Stop = Stop()
    """The conditions under which the experiment ends before all runs are done."""

    @model_validator(mode="after")
    def _check_grids(self) -> Plan:
        self.all_arms()
        return self

    def all_arms(self) -> dict[str, Arm]:
        """Return all arms by name, with the limits of the plan; each grid is expanded into one arm per combination.

        Raises:
            ValidationError: A grid names an unknown field or contains an invalid value.
        """
        arms: dict[str, Arm] = {}
        for name, arm in self.arms.items():
            fields = arm.model_dump(exclude={"grid"}, exclude_unset=True)
            fields["limits"] = {**_set_limits(self.limits), **_set_limits(arm.limits)}
            axes = _axes(name, arm.grid)
            if len(arms) + math.prod(map(len, axes.values())) > MOST_ARMS:
                raise _invalid(("arms", name, "grid"), f"a plan has at most {MOST_ARMS} arms", None)
            for values in itertools.product(*axes.values()):
                chosen = dict(zip(axes, values, strict=True))
                label = ",".join(f"{key.rpartition('.')[2]}={value}" for key, value in chosen.items())
                arms[f"{name}:{label}" if label else name] = _with(name, fields, chosen)
        return arms

    @property
    def request(self) -> Request:
        """The request for all runs."""
        design = self.experiment
        return Request(
            tasks=design.tasks, arms=self.all_arms(), seeds=design.seeds, order=design.order, experiment=design.name
        )


def _set_limits(limits: PlanLimits) -> dict[str, Any]:
    return limits.model_dump(exclude_none=True)


def _axes(arm: str, grid: dict[str, Any], prefix: str = "") -> dict[str, list[Any]]:
    """Return the fields of a grid with their values; nested tables become dotted names."""
    axes: dict[str, list[Any]] = {}
    for key, value in grid.items():
        if isinstance(value, dict) and not prefix:
            axes |= _axes(arm, value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple) and value:
            axes[f"{prefix}{key}"] = list(value)
        else:
            raise _invalid(("arms", arm, "grid", f"{prefix}{key}"), "must be a list of values", value)
    return axes


def _with(name: str, fields: dict[str, Any], chosen: dict[str, Any]) -> Arm:
    changed = {**fields, "limits": dict(fields["limits"]), "options": dict(fields.get("options", {}))}
    for key, value in chosen.items():
        table, dot, field = key.partition(".")
        if dot and table in ("limits", "options"):
            changed[table][field] = value
        else:
            changed[key] = value
    try:
        return Arm.model_validate(changed)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _invalid(("arms", name, "grid", *first["loc"]), first["msg"], first["input"], first["type"]) from None


def _invalid(place: tuple[int | str, ...], message: str, value: Any, kind: str = "grid") -> ValidationError:
    problem = PydanticCustomError(kind, "{message}", {"message": message})
    return ValidationError.from_exception_data("Plan", [InitErrorDetails(type=problem, loc=place, input=value)])
