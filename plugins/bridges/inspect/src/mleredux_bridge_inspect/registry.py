"""Entry point for Inspect: registers each task as `mleredux/TASK`, and `mleredux/any -T task=…` for any name."""

from __future__ import annotations

import json
from inspect import signature
from typing import Annotated, Any

import click
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.util import SandboxEnvironmentSpec
from mleredux import MlereduxError
from mleredux.models import first_problem
from mleredux.plugin.command import Duration, current
from pydantic import Field, ValidationError, validate_call

from mleredux_bridge_inspect.sandbox import Places, SessionSandbox
from mleredux_bridge_inspect.scorers import score, standing, valid
from mleredux_bridge_inspect.solvers import instructions, run_agent, tools_in_sandbox

__all__ = ["SessionSandbox", "make", "run_agent", "score", "standing", "tools_in_sandbox", "valid"]


@validate_call
def make(
    name: str,
    *,
    agent: str | None = None,
    options: dict[str, Any] | str | None = None,
    sandbox: str | None = None,
    seed: int = 0,
    samples: Annotated[int, Field(ge=1)] = 1,
    time_limit: float | str | None = None,
    network: str | None = None,
    runs_dir: str | None = None,
    data_dir: str | None = None,
) -> Task:
    """Return an Inspect task for a mleredux task.

    Args:
        name: The id of our task.
        agent: An agent to run instead of Inspect's model.
        options: Options of that agent; a mapping, or JSON.
        sandbox: Id of a sandbox; None for the best available sandbox.
        seed: Random seed of the first sample; the following samples use consecutive seeds.
        samples: Number of samples.
        time_limit: Seconds, or `30m`, `2h`.
        network: Network of that agent.
        runs_dir, data_dir: As in `mleredux.run`.

    Raises:
        MlereduxError: The task, agent or sandbox does not exist, or an option is invalid.
        pydantic.ValidationError: An argument has the wrong type.
    """
    entry = current().task(name)
    values = _read(options)
    if sandbox is not None:
        current().get("sandboxes", sandbox)
    if agent is not None:
        current().agent(agent, values)
    seconds = None if time_limit is None else Duration().convert(str(time_limit), None, None)
    places: dict[str, Any] = {"sandbox": sandbox, "time_limit": seconds, "runs_dir": runs_dir, "data_dir": data_dir}
    text = entry.describe()
    rows = [
        Sample(
            id=entry.id if samples == 1 else f"{entry.id}-seed-{number}", input=text, metadata=_about(entry.id, number)
        )
        for number in range(seed, seed + samples)
    ]
    metadata = {"metric": entry.metric.grader, "title": entry.title}
    about: dict[str, Any] = {"version": entry.version, "metadata": metadata}
    if agent is not None:
        solver = run_agent(agent, entry.id, values, network=network, **places)
        return Task(MemoryDataset(rows, name=entry.id), solver=solver, scorer=[standing(), score(), valid()], **about)
    return Task(
        MemoryDataset(rows, name=entry.id),
        setup=instructions(),
        solver=tools_in_sandbox(),
        scorer=[standing(), score(), valid()],
        sandbox=SandboxEnvironmentSpec("mleredux", Places(task=entry.id, **places)),
        **about,
    )


def _read(options: dict[str, Any] | str | None) -> dict[str, Any]:
    try:
        values = json.loads(options) if isinstance(options, str) else options or {}
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise MlereduxError(
            f"The options {options!r} are not a JSON object.", hint='Write them as \'{"name": "value"}\'.'
        )
    return values


def _make_for_cli(name: str, arguments: dict[str, Any]) -> Task:
    """Return a task for the command line; convert errors to those that Inspect shows without a traceback."""
    try:
        return make(name, **arguments)
    except MlereduxError as error:
        raise click.ClickException(str(error)) from None
    except ValidationError as error:
        problem = first_problem(error)
        raise click.ClickException(f"-T {problem.place.partition('.')[0]}: {problem.message}.") from None


def _about(name: str, seed: int) -> dict[str, Any]:
    return {"task": name, "seed": seed}


def _registered(name: str) -> None:
    def build(**arguments: Any) -> Task:
        return _make_for_cli(name, arguments)

    options = list(signature(make).parameters.values())[1:]
    vars(build)["__signature__"] = signature(make).replace(parameters=options)
    build.__module__ = "mleredux"  # Inspect names a task by the package of its function
    task(name=name)(build)


def _any(task: str, **arguments: Any) -> Task:
    """Return a task by any name that `mleredux run` accepts, such as a variant: `-T task=wine+planted-7`."""
    return _make_for_cli(task, arguments)


_any.__module__ = "mleredux"
task(name="any")(_any)
for _name in current().entries("tasks"):
    _registered(_name)
