"""Experiments: the plan of a matrix of runs, as a user writes it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, create_model, field_validator, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from mleredux.models.agent import Limits, Network
from mleredux.models.base import ID_PATTERN, Model
from mleredux.models.grants import Grants
from mleredux.models.units import MAX_SEED, megabytes, seconds

SET = "set:"
"""Prefix of a task that stands for all tasks of a set."""
MOST_ARMS = 1000
"""Maximum number of arms of a plan, all combinations of grids counted."""
Name = Annotated[str, Field(pattern=ID_PATTERN, max_length=64)]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
"""A seed of a run."""
_UNITS: dict[str, Callable[[Any], float]] = {
    **dict.fromkeys(("time_limit", "notice", "grace"), seconds),
    **dict.fromkeys(("memory_mb", "disk_mb"), megabytes),
}


def _in_unit(field: str) -> BeforeValidator:
    unit = _UNITS.get(field)
    return BeforeValidator(lambda value: unit(value) if unit is not None and isinstance(value, str) else value)


if TYPE_CHECKING:
    PlanLimits = Limits
else:
    PlanLimits = create_model(
        "PlanLimits",
        __base__=Model,
        __doc__="Limits that differ from the agents' own; times as `90s` or `2h`, sizes as `512m` or `4g` too.",
        **{
            name: (Annotated[field.annotation | None, *field.metadata, _in_unit(name)], None)
            for name, field in Limits.model_fields.items()
        },
    )


class Design(Model):
    """What is asked, and of which tasks and seeds: the table `experiment` of a plan."""

    name: Name
    question: str = Field(default="", max_length=2000)
    primary: str = "any_medal"
    """The measure that decides."""
    margin: float = Field(default=0, ge=0, allow_inf_nan=False)
    """The smallest difference that matters, in the unit of the primary measure."""
    alpha: float = Field(default=0.05, gt=0, lt=1)
    """The probability of a false alarm."""
    analysis: Literal["paired", "equivalence"] = "paired"
    """Whether arms differ, or whether they differ by less than the margin."""
    tasks: tuple[str, ...] = Field(min_length=1)
    """Ids of tasks, and sets as `set:lite`."""
    seeds: tuple[Seed, ...] = Field(default=(0,), min_length=1)
    order: Literal["interleaved", "by_task"] = "interleaved"
    """`interleaved`: each task with all arms before the next, so that load and drift affect arms alike."""

    @model_validator(mode="after")
    def _check_margin(self) -> Design:
        if self.analysis == "equivalence" and not self.margin:
            raise ValueError('analysis = "equivalence" needs a margin above 0')
        return self


class Arm(Model):
    """One of the compared ways to run."""

    agent: str
    model: str | None = None
    """The agent's option `model`."""
    options: dict[str, Any] = {}
    limits: PlanLimits = PlanLimits()
    sandbox: str | None = None
    network: Network | None = None
    grants: Grants = Grants()
    """What the agent may have besides its network; on a server, within what its administrator allows."""
    image: str | None = None
    """Base image of the agent's image."""
    obfuscated: bool = False
    """Whether the agent gets descriptions without the competition's name and story."""
    verify: bool | None = None
    """Whether the final code is executed again to verify the result; None: no, on a server as configured there."""
    variant: str = ""
    """Variant of every task, e.g. `fixed` or `private`; pairs are formed by the task without it."""
    context: str | None = None
    """A text file to append to the agent's instructions; `{task}` stands for the task's id."""
    contexts: dict[str, str] = {}
    """The texts themselves by task, `*` for all others; filled in when a plan file is read."""
    grid: dict[str, Any] = {}
    """Fields with lists of values: one arm for each combination. Options are `options.NAME`, limits `limits.NAME`."""

    @field_validator("variant")
    @classmethod
    def _without_plus(cls, value: str) -> str:
        return value.removeprefix("+")

    def request(self, task: str) -> dict[str, Any]:
        """The fields of the request for a run of a task, without the seed."""
        options = {**self.options, **({"model": self.model} if self.model is not None else {})}
        return {
            "task": f"{task}+{self.variant}" if self.variant else task,
            "agent": self.agent,
            "sandbox": self.sandbox,
            "network": self.network,
            "grants": self.grants,
            "limits": self.limits.model_dump(exclude_none=True),
            "options": options,
            "obfuscated": self.obfuscated,
            "verify": self.verify,
            "context": self.contexts.get(task, self.contexts.get("*")),
        }


class Stop(Model):
    """When no new run is started: budgets, and the stopping rule."""

    max_cost_usd: float | None = Field(default=None, gt=0)
    """Cost of all runs by the gateway's prices."""
    max_hours: float | None = Field(default=None, gt=0)
    """Time of all runs added up."""
    rule: Literal["fixed", "sequential"] = "fixed"
    """`sequential`: stop as soon as a test that allows looking at any time has decided."""


class Cell(NamedTuple):
    """One run of a plan."""

    arm: str
    task: str
    """Without the arm's variant: the pair's task."""
    seed: int


class Plan(Model):
    """The plan of an experiment: each task with each arm and each seed."""

    experiment: Design
    limits: PlanLimits = PlanLimits()
    """Limits of all arms."""
    arms: dict[Name, Arm] = Field(min_length=1, max_length=MOST_ARMS)
    stop: Stop = Stop()

    @model_validator(mode="after")
    def _check_grids(self) -> Plan:
        self.all_arms()
        return self

    def all_arms(self) -> dict[str, Arm]:
        """All arms by name, with the limits of the plan; a grid is replaced by an arm for each combination.

        Raises:
            ValidationError: A grid has no such field, or an invalid value.
        """
        found: dict[str, Arm] = {}
        for name, arm in self.arms.items():
            fields = arm.model_dump(exclude={"grid"}, exclude_unset=True)
            fields["limits"] = {**_given(self.limits), **_given(arm.limits)}
            axes = _axes(name, arm.grid)
            if len(found) + math.prod(map(len, axes.values())) > MOST_ARMS:
                raise _invalid(("arms", name, "grid"), f"a plan has at most {MOST_ARMS} arms", None)
            for values in itertools.product(*axes.values()):
                chosen = dict(zip(axes, values, strict=True))
                label = ",".join(f"{key.rpartition('.')[2]}={value}" for key, value in chosen.items())
                found[f"{name}:{label}" if label else name] = _with(name, fields, chosen)
        return found

    def cells(self, tasks: list[str]) -> list[Cell]:
        """All runs, in the order in which they are started.

        Args:
            tasks: Ids of the plan's tasks, sets resolved.
        """
        arms, seeds = list(self.all_arms()), list(dict.fromkeys(self.experiment.seeds))
        if self.experiment.order == "by_task":
            return [Cell(arm, task, seed) for task in tasks for arm in arms for seed in seeds]
        # The arm that comes first changes from task to task, so that none always meets the emptier machine.
        return [
            Cell(arms[(number + turn) % len(arms)], task, seed)
            for number, (seed, task) in enumerate(itertools.product(seeds, tasks))
            for turn in range(len(arms))
        ]


def _given(limits: PlanLimits) -> dict[str, Any]:
    return limits.model_dump(exclude_none=True)


def _axes(arm: str, grid: dict[str, Any], prefix: str = "") -> dict[str, list[Any]]:
    """The fields of a grid with their values; nested tables become dotted names."""
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
