"""Requests: the tasks, arms and seeds of runs, as a command, a program, a plan or a service states them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, ValidationError, create_model, field_validator

from mleredux.models.agent import Limits, Network
from mleredux.models.base import ID_PATTERN, AnyModel, Model, first_problem
from mleredux.models.grants import Grants
from mleredux.models.units import MAX_SEED, megabytes, seconds

SET = "set:"
"""Prefix of a task that stands for all tasks of a set."""
Name = Annotated[str, Field(pattern=ID_PATTERN, max_length=64)]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
"""A seed of a run."""
Order = Literal["interleaved", "by_task"]
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


class Arm(Model):
    """One of the compared ways to run."""

    agent: str
    """Id or reference of the agent."""
    model: str | None = None
    """The agent's option `model`."""
    options: dict[str, Any] = {}
    """Options of the agent."""
    limits: PlanLimits = PlanLimits()
    """Limits that differ from the defaults of the agent."""
    sandbox: str | None = None
    """Id of the sandbox; None: the first that can run the agent."""
    network: Network | None = None
    """Network access; None: the default of the agent."""
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
        """Return the fields of the request for a run of a task, without the seed."""
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


class Cell(NamedTuple):
    """One run of a plan."""

    arm: str
    """The name of the arm."""
    task: str
    """Without the arm's variant: the pair's task."""
    seed: int
    """The seed of the run."""


class Request(Model):
    """Runs that are requested together: each task with each arm and each seed."""

    tasks: tuple[str, ...]
    """Ids or references; `set:NAME` stands for all tasks of a set."""
    arms: dict[str, Arm]
    """The ways to run, by name."""
    seeds: tuple[Seed, ...] = (0,)
    """Seeds; each task is run with each arm and each seed."""
    order: Order = "by_task"
    """`by_task`: all runs of a task in a row; `interleaved`: the arms take turns."""
    experiment: str | None = None
    """The experiment that the runs belong to, if any: they then record their arms."""

    @classmethod
    def single(
        cls, task: str, agent: str, *, seed: int = 0, limits: Mapping[str, Any] | None = None, **arm: Any
    ) -> Request:
        """Return the request of one run; `arm` has fields of `Arm`.

        Raises:
            MlereduxError: A value is not valid.
        """
        return cls.matrix((task,), (agent,), (seed,), limits=limits or {}, **arm)

    @classmethod
    def matrix(
        cls,
        tasks: Iterable[str],
        agents: Iterable[str],
        seeds: Iterable[int] = (),
        *,
        limits: Mapping[str, Any],
        context: str | None = None,
        **arm: Any,
    ) -> Request:
        """Return a request of each task with each agent and each seed, all run in the same way.

        Args:
            tasks: Ids, references, and sets as `set:NAME`.
            agents: Ids, references or paths.
            seeds: None: the default seed.
            limits: Those that differ from the agents' own.
            context: A text for each agent.
            arm: Other fields of `Arm`.

        Raises:
            MlereduxError: A value is not valid.
        """
        from mleredux.errors import MlereduxError

        chosen = tuple(seeds)
        if wrong := [seed for seed in chosen if not 0 <= seed <= MAX_SEED]:
            message = f"The seed is {wrong[0]}; libraries take seeds from 0 to {MAX_SEED}."
            raise MlereduxError(message, hint="Choose another.")
        arm |= {"limits": checked_limits(PlanLimits, limits), "contexts": {} if context is None else {"*": context}}
        try:
            arms = {name: Arm(agent=name, **arm) for name in agents}
        except ValidationError as error:
            place, message, _ = first_problem(error)
            raise MlereduxError(f"The request is not valid: {place}: {message}.") from error
        return cls(tasks=tuple(tasks), arms=arms, **({"seeds": chosen} if chosen else {}))

    def cells(self) -> list[Cell]:
        """Return all runs in the order in which they are started; sets are resolved before."""
        tasks, arms, seeds = list(dict.fromkeys(self.tasks)), list(self.arms), list(dict.fromkeys(self.seeds))
        if self.order == "by_task":
            return [Cell(arm, task, seed) for task in tasks for arm in arms for seed in seeds]
        # The arm that comes first changes from task to task, so that none always meets the emptier machine.
        return [
            Cell(arms[(number + turn) % len(arms)], task, seed)
            for number, (seed, task) in enumerate(itertools.product(seeds, tasks))
            for turn in range(len(arms))
        ]

    def pinned(self, references: Mapping[str, str]) -> Request:
        """Return the request with exact references (`repo:…@COMMIT`) of its agents."""
        arms = {
            name: arm.model_copy(update={"agent": references.get(arm.agent, arm.agent)})
            for name, arm in self.arms.items()
        }
        return self.model_copy(update={"arms": arms})


def checked_limits(kind: type[AnyModel], limits: Mapping[str, Any]) -> AnyModel:
    """Return limits as a model.

    Raises:
        MlereduxError: One of them is out of range.
    """
    try:
        return kind.model_validate(dict(limits))
    except ValidationError as error:
        from mleredux.errors import MlereduxError

        name, message, value = first_problem(error)
        wanted = message.removeprefix("Input should be ")
        raise MlereduxError(f"The limit {name} is {value!r}; it should be {wanted}.") from error
