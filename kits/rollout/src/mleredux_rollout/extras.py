"""The fields specific to ML engineering, in ATIF's `extra` fields.

A step's `extra` holds the fields of `StepExtra` in addition to any others of the agent; a document's `extra` holds
those of `RunExtra` under the key `mleredux`. Agents write the former; the latter is added later.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from mleredux_rollout.models import SCHEMA_VERSION, Step, Trajectory, described

RUN_KEY = "mleredux"


class _Convention(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        allow_inf_nan=False,
        ser_json_inf_nan="null",
    )
    __get_pydantic_json_schema__ = described


class StepExtra(_Convention):
    """Facts about a step that tries a solution. All fields are optional; unknown fields are kept.

    `Step(…, extra=StepExtra(node_id="7", parent_id="3", validation_metric=0.81).as_extra())`
    """

    node_id: str | None = None
    """The solution that this step created, in the agent's own search tree."""
    parent_id: str | None = None
    """The solution that it was derived from; None for a new draft."""
    stage: str | None = None
    """The purpose of the step: `draft`, `debug`, `improve`, `tune`, `ensemble`, `submit`, …"""
    metric_name: str | None = None
    """The name of the metric."""
    validation_metric: float | None = None
    """The metric, measured by the agent on its own validation data; None if that failed."""
    lower_is_better: bool | None = None
    """Whether smaller values of `validation_metric` are better."""
    is_buggy: bool | None = None
    """Whether the solution's code failed, or its result can't be used."""
    seconds: float | None = None
    """Seconds for which the step's code ran."""
    submission_version: int | None = None
    """The version of the submission that this step wrote, as numbered in the run."""
    score_after_run: float | None = None
    """The test score of that version, graded after the run. The agent never saw it."""

    def as_extra(self) -> dict[str, Any]:
        """Return the known facts for `Step(extra=…)`, ready for JSON."""
        return self.model_dump(mode="json", exclude_none=True)


class SubmissionFact(_Convention):
    """A stored version of the submission."""

    version: int
    """The number of the version, counted from 1."""
    time: datetime
    """When the version was copied, in UTC."""
    seconds: float | None = None
    """Seconds since the agent's start."""
    size: int | None = None
    """Size in bytes."""
    score: float | None = None
    """The test score, graded after the run. The agent never saw it."""


class RunExtra(_Convention):
    """Facts about the run that a document belongs to. They must never include environment variables."""

    run: str
    """Id of the run."""
    task: str
    """Id of the task."""
    task_version: str | None = None
    """The version of the task."""
    agent: str
    """Id of the agent."""
    agent_version: str | None = None
    """The version of the agent."""
    seed: int | None = None
    """The seed that the agent received."""
    sandbox: str | None = None
    """Id of the sandbox."""
    image: str | None = None
    """Identity of the agent's environment."""
    packages: dict[str, str] = {}
    """Versions of mleredux and its plugins."""
    state: str | None = None
    """The final state of the run."""
    cause: str | None = None
    """Why the run failed."""
    metric: str | None = None
    """The name of the metric."""
    lower_is_better: bool | None = None
    """Whether smaller scores are better."""
    score: float | None = None
    """The score of the submission."""
    medal: str | None = None
    """`gold`, `silver`, `bronze` or None."""
    above_median: bool | None = None
    """Whether the score is better than the median of the leaderboard."""
    percentile: float | None = None
    """Percentage of the leaderboard's entries that the score beats or equals."""
    valid_submission: bool | None = None
    """Whether the submission could be scored."""
    submissions: list[SubmissionFact] = []
    """The versions of the submission, in order."""
    made_from: str | None = None
    """The source of the document: `agent` (its own document), `native logs`, `llm calls` (the gateway's record of
    them), or `events` (assembled from events, logs and code)."""


_Model = TypeVar("_Model", bound=_Convention)


def step_extra(step: Step) -> StepExtra:
    """Return the ML-engineering facts of a step. Fields of a wrong type are omitted, so that this never fails."""
    return _tolerant(StepExtra, step.extra or {})


def run_extra(trajectory: Trajectory) -> RunExtra | None:
    """Return the run facts of a document; None if it has none, or they can't be read."""
    extra = (trajectory.extra or {}).get(RUN_KEY)
    if not isinstance(extra, dict):
        return None
    try:
        return _tolerant(RunExtra, extra)
    except ValidationError:
        return None


def with_run_extra(trajectory: Trajectory, facts: RunExtra) -> Trajectory:
    """Return the same document with these run facts, which replace earlier ones."""
    extra = {**(trajectory.extra or {}), RUN_KEY: facts.model_dump(mode="json", exclude_none=True)}
    return trajectory.model_copy(update={"extra": extra})


def _tolerant(model: type[_Model], values: Mapping[str, Any]) -> _Model:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        wrong = {str(problem["loc"][0]) for problem in error.errors() if problem["loc"]}
        return model.model_validate({name: value for name, value in values.items() if name not in wrong})


def json_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a document, with `StepExtra` and `RunExtra` among its `$defs`.

    It contains all rules that JSON schema can express; `check_rollout` also checks step numbers, references to tool
    calls and unique ids.
    """
    schema = Trajectory.model_json_schema()
    for convention in (StepExtra, RunExtra):
        own = convention.model_json_schema()
        schema["$defs"] |= own.pop("$defs", {})
        schema["$defs"][convention.__name__] = own
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Rollout of mleredux ({SCHEMA_VERSION})",
        **schema,
    }
