"""Read plan files (TOML) into the core's `Plan`; errors name fields as written in the file."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError, NotFound, file_errors
from mleredux.models.base import plain_message
from mleredux.plugin.command import Catalogue
from mleredux.plugin.experiment import Arm, Cell, Design, Plan, PlanLimits, RunPlan, Stop, agent_reference, resolved
from mleredux.plugin.experiment import plan as plan_runs
from pydantic import ValidationError

_TABLES: dict[str, Any] = {"experiment": Design, "limits": PlanLimits, "arms": Arm, "stop": Stop}
_EXAMPLE = "See `mleredux experiment --help` and the how-to on experiments for an example."


def read_plan(path: Path, catalogue: Catalogue) -> Plan:
    """Read a plan file, including the context files of its arms.

    Raises:
        NotFound: The file, or a task, agent or set, does not exist.
        MlereduxError: The file is not a valid plan; the message names the field.
    """
    with file_errors(NotFound, f"The plan {path} can't be read", _EXAMPLE):
        content = path.read_bytes()
    with file_errors(MlereduxError, f"{path} is not valid TOML", _EXAMPLE, ValueError):
        document = tomllib.loads(content.decode())
    return with_contexts(make_plan(document, named=str(path)), catalogue, path.parent)


def make_plan(document: Mapping[str, Any], *, named: str = "The plan") -> Plan:
    """Create a plan from the document of its file.

    Raises:
        MlereduxError: The document is invalid; the message names the field.
    """
    try:
        return Plan.model_validate(document)
    except ValidationError as error:
        # A misspelled field causes two errors, an unknown and a missing field; the first one shows what the user wrote.
        first = min(error.errors(include_url=False), key=lambda entry: entry["type"] != "extra_forbidden")
        raise _explained(first["loc"], first["type"], plain_message(first), first["input"], named) from None


def with_contexts(plan: Plan, catalogue: Catalogue, folder: Path) -> Plan:
    """Return the plan with the contents of all context files, and with full paths of agents in its folder.

    Raises:
        MlereduxError: A file cannot be read.
    """
    arms = {}
    for name, arm in plan.arms.items():
        placed: dict[str, Any] = {"agent": _placed(arm.agent, catalogue, folder)}
        if "agent" in arm.grid:
            placed["grid"] = {**arm.grid, "agent": [_placed(agent, catalogue, folder) for agent in arm.grid["agent"]]}
        arm = arm.model_copy(update=placed)
        paths = [path for path in (arm.context, *arm.grid.get("context", ())) if path]
        if not paths:
            arms[name] = arm
            continue
        if len(paths) > 1 or arm.context is None:
            raise MlereduxError(f"arms.{name}.grid.context is not supported.", hint="Define one arm per context.")
        tasks = resolved(plan.request, catalogue).tasks if "{task}" in arm.context else ["*"]
        texts = {task: _text(folder / arm.context.replace("{task}", task), name) for task in tasks}
        arms[name] = arm.model_copy(update={"contexts": texts})
    return plan.model_copy(update={"arms": arms})


def _placed(agent: str, catalogue: Catalogue, folder: Path) -> str:
    """Return an agent's path, resolved relative to the plan; ids and references are unchanged."""
    path = Path(os.path.normpath(folder.absolute() / agent))
    if agent in catalogue.entries("agents") or ":" in agent or not path.exists():
        return agent
    return str(path)


def check_measure(plan: Plan) -> None:
    """Check that the primary measure of a plan exists.

    Raises:
        MlereduxError: The measure does not exist.
    """
    from mleredux_experiments.results.measures import MEASURES, measure

    with _field("experiment.primary"):
        try:
            measure(plan.experiment.primary)
        except MlereduxError as error:
            near = difflib.get_close_matches(plan.experiment.primary, MEASURES, n=1)
            raise MlereduxError(error.message, hint=f"Did you mean {near[0]}?" if near else error.hint) from None


def check_plan(plan: Plan, catalogue: Catalogue) -> None:
    """Check that each run of a plan can be executed here; errors name the field.

    Raises:
        MlereduxError: A run cannot be executed.
    """
    from mleredux_experiments.execution.sequence import check_sequence

    check_measure(plan)
    with _field("experiment.tasks"):
        tasks = resolved(plan.request, catalogue).tasks
        for task in tasks:
            catalogue.task(task)
    check_sequence(plan, len(tasks))
    for name, arm in plan.all_arms().items():
        base, request = name.partition(":")[0], arm.request("")
        untold = [task for task in tasks if arm.context and not {task, "*"} & arm.contexts.keys()]
        if untold:
            raise MlereduxError(
                f"arms.{base}.context: the text for {untold[0]} is missing.",
                hint="Add the task to the plan's file, write the text next to it, and run the plan again.",
            )
        with _field(f"arms.{base}.agent"):
            agent = agent_reference(catalogue, arm.agent)
            catalogue.agent(agent)
        with _field(f"arms.{base}.options"):
            catalogue.agent(agent, request["options"])
        with _field(f"arms.{base}"):
            planned_cells(plan.model_copy(update={"arms": {name: arm}}), catalogue)


def planned_cells(
    plan: Plan, catalogue: Catalogue, pinned: Mapping[str, str] | None = None
) -> list[tuple[Cell, RunPlan]]:
    """Return all cells of a plan, each with its run, in the order in which they are started.

    Args:
        pinned: Exact references of agents, by the references in the plan.

    Raises:
        MlereduxError: A run cannot be executed here.
    """
    request = resolved(plan.request, catalogue).pinned(pinned or {})
    return list(zip(request.cells(), plan_runs(request, catalogue, own_machine=True), strict=True))


@contextmanager
def _field(name: str) -> Iterator[None]:
    """Add the name of the plan's field to errors."""
    try:
        yield
    except MlereduxError as error:
        raise type(error)(f"{name}: {error.message}", hint=error.hint) from None


def _text(path: Path, arm: str) -> str:
    with file_errors(MlereduxError, f"arms.{arm}.context: {path} can't be read", "Write the file."):
        return path.read_text(encoding="utf-8")


def _explained(loc: tuple[int | str, ...], kind: str, message: str, rejected: Any, named: str) -> MlereduxError:
    parts = [str(part) for part in loc if part != "[key]"]
    field = ".".join(parts)
    if kind == "extra_forbidden":
        near = _nearest(parts)
        known = ", ".join(_fields(parts[:-1]))
        return MlereduxError(
            f"{named}: there is no field {field}.", hint=f"Did you mean {near}?" if near else f"Fields are {known}."
        )
    if kind == "missing":
        return MlereduxError(f"{named}: {field} is missing.", hint=f"Add it. {_EXAMPLE}")
    if kind == "string_pattern_mismatch":
        message = "a name consists of letters, digits, dots, dashes and underscores only"
    message = message.replace("Input should", "it must", 1)
    value = "" if isinstance(rejected, dict) or rejected is None or repr(rejected) in message else f", not {rejected!r}"
    return MlereduxError(f"{named}: {field}: {message[:1].lower() + message[1:]}{value}.", hint=f"Change {field}.")


def _fields(parents: list[str]) -> list[str]:
    if not parents:
        return list(_TABLES)
    if parents[-1] == "limits":
        return list(PlanLimits.model_fields)
    table = _TABLES.get(parents[0])
    return [name for name in table.model_fields if name != "contexts"] if table else []


def _nearest(parts: list[str]) -> str | None:
    """Return the field that was probably meant: a similar one in the same table, or one with the same name in another
    table.
    """
    if len(parts) == 3 and parts[-1] in PlanLimits.model_fields:
        return ".".join([*parts[:-1], "limits", parts[-1]])
    near = difflib.get_close_matches(parts[-1], _fields(parts[:-1]), n=1)
    if near:
        return ".".join([*parts[:-1], near[0]])
    places = {name: table for table in ("experiment", "stop", "limits") for name in _fields([table])}
    near = difflib.get_close_matches(parts[-1], places, n=1)
    return f"{places[near[0]]}.{near[0]}" if near else None
