"""Requests: the tasks, arms and seeds of runs, from a command, a program, a plan or a service."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, SupportsIndex

from pydantic import BeforeValidator, Field, ValidationError, create_model, field_validator

from mleredux.models.agent import Grants, Limits, Network
from mleredux.models.base import ID_PATTERN, AnyModel, Model, first_problem
from mleredux.models.units import MAX_SEED, megabytes, seconds

SET = "set:"
"""Prefix of a task name that stands for all tasks of a set."""
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
        __doc__="Limits that differ from the agents' own; times may be `90s` or `2h`, sizes `512m` or `4g`.",
        **{
            name: (Annotated[field.annotation | None, *field.metadata, _in_unit(name)], None)
            for name, field in Limits.model_fields.items()
        },
    )


class Arm(Model):
    """One of the configurations to compare."""

    agent: str
    """Id or reference of the agent."""
    model: str | None = None
    """The agent's option `model`."""
    options: dict[str, Any] = {}
    """Options of the agent."""
    limits: PlanLimits = PlanLimits()
    """Limits that differ from the agent's defaults."""
    sandbox: str | None = None
    """Id of the sandbox; None: the first sandbox that can run the agent."""
    network: Network | None = None
    """Network access; None: the agent's default."""
    grants: Grants = Grants()
    """The agent's access beyond its network; on a server, within the administrator's limits."""
    image: str | None = None
    """Base image of the agent's image."""
    obfuscated: bool = False
    """Whether the agent gets descriptions without the competition's name and story."""
    verify: bool | None = None
    """Whether to execute the final code again to verify the result; None: no, or on a server as configured there."""
    variant: str = ""
    """Variant of every task, such as `fixed` or `private`; pairs are matched by the task without its variant."""
    context: str | None = None
    """A text file to append to the agent's instructions; `{task}` stands for the task's id."""
    contexts: dict[str, str] = {}
    """The texts themselves, by task, with `*` for all other tasks; filled in when a plan file is read."""
    grid: dict[str, Any] = {}
    """Fields with lists of values: one arm per combination. Options are `options.NAME`, limits `limits.NAME`."""

    @field_validator("variant")
    @classmethod
    def _without_plus(cls, value: str) -> str:
        return value.removeprefix("+")

    def request(self, task: str) -> dict[str, Any]:
        """Return the fields of the request for a run of a task, except the seed."""
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
    """The task without the arm's variant, by which pairs are matched."""
    seed: int
    """The seed of the run."""


class Request(Model):
    """Runs that are requested together: each task with each arm and each seed."""

    tasks: tuple[str, ...]
    """Ids or references; `set:NAME` stands for all tasks of a set."""
    arms: dict[str, Arm]
    """The configurations, by name."""
    seeds: tuple[Seed, ...] = (0,)
    """Seeds; each task is run with each arm and each seed."""
    order: Order = "by_task"
    """`by_task`: all runs of a task in sequence; `interleaved`: the arms alternate."""
    experiment: str | None = None
    """The experiment that the runs belong to, if any; the runs then record their arms."""

    @classmethod
    def single(
        cls, task: str, agent: str, *, seed: int = 0, limits: Mapping[str, Any] | None = None, **arm: Any
    ) -> Request:
        """Return the request for one run; `arm` holds fields of `Arm`.

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
        """Return a request for each task with each agent and each seed, with the same settings for all.

        Args:
            tasks: Ids, references, or sets as `set:NAME`.
            agents: Ids, references or paths.
            seeds: The seeds; None: the default seed.
            limits: Limits that differ from the agents' own.
            context: Text to append to each agent's instructions.
            arm: Other fields of `Arm`.

        Raises:
            MlereduxError: A value is not valid.
        """
        from mleredux.errors import MlereduxError

        chosen = tuple(seeds)
        if wrong := [seed for seed in chosen if not isinstance(seed, SupportsIndex) or not 0 <= int(seed) <= MAX_SEED]:
            message = f"The seed is {wrong[0]!r}; seeds must be integers from 0 to {MAX_SEED}."
            raise MlereduxError(message, hint="Choose another.")
        arm |= {"limits": checked_limits(PlanLimits, limits), "contexts": {} if context is None else {"*": context}}
        try:
            arms = {name: Arm(agent=name, **arm) for name in agents}
        except ValidationError as error:
            place, message, _ = first_problem(error)
            raise MlereduxError(f"The request is not valid: {place}: {message}.") from error
        return cls(tasks=tuple(tasks), arms=arms, **({"seeds": chosen} if chosen else {}))

    def cells(self) -> list[Cell]:
        """Return all runs in the order in which they start; sets must be resolved first."""
        tasks, arms, seeds = list(dict.fromkeys(self.tasks)), list(self.arms), list(dict.fromkeys(self.seeds))
        if self.order == "by_task":
            return [Cell(arm, task, seed) for task in tasks for arm in arms for seed in seeds]
        # The first arm changes from task to task, so that no arm always gets the idle machine.
        return [
            Cell(arms[(number + turn) % len(arms)], task, seed)
            for number, (seed, task) in enumerate(itertools.product(seeds, tasks))
            for turn in range(len(arms))
        ]

    def pinned(self, references: Mapping[str, str]) -> Request:
        """Return the request with its agents' exact references (`repo:…@COMMIT`)."""
        arms = {
            name: arm.model_copy(update={"agent": references.get(arm.agent, arm.agent)})
            for name, arm in self.arms.items()
        }
        return self.model_copy(update={"arms": arms})


def checked_limits(kind: type[AnyModel], limits: Mapping[str, Any]) -> AnyModel:
    """Return limits as a model.

    Raises:
        MlereduxError: A limit is out of range.
    """
    try:
        return kind.model_validate(dict(limits))
    except ValidationError as error:
        from mleredux.errors import MlereduxError

        name, message, value = first_problem(error)
        wanted = message.replace("Input should", "it should").partition(", unable to parse")[0]
        if name.rpartition(".")[2] == value:  # the key of a mapping
            raise MlereduxError(f"The limit {name.rpartition('.')[0]} has no {value!r}; {wanted}.") from error
        raise MlereduxError(f"The limit {name} is {value!r}; {wanted}.") from error
