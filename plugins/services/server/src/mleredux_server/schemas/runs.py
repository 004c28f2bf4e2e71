"""Models of runs and experiments."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from mleredux.models import Grants, Report
from mleredux.models.agent import RetriedCause
from mleredux.plugin.experiment import Plan, Seed
from mleredux_http_api import ExperimentView, QueuePlace, RunView
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from mleredux_server.schemas.body import Body
from mleredux_server.schemas.units import Seconds

Name = Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=r"^[^\x00-\x1f\x7f]+$")]
Label = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$")]
LabelName = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f:]+$")]
SecretName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
NetworkName = Literal["none", "gateway", "open"]


class LimitsAsked(BaseModel):
    """Limits that differ from the agent's own; see `mleredux.plugin.agent.Limits`."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    time_limit: Seconds | None = Field(default=None, gt=0, le=30 * 86400)
    notice: Seconds | None = Field(default=None, ge=0, le=86400)
    grace: Seconds | None = Field(default=None, ge=0, le=3600)
    cpus: float | None = Field(default=None, gt=0, le=4096)
    memory_mb: int | None = Field(default=None, ge=64, le=2**30)
    disk_mb: int | None = Field(default=None, ge=1, le=2**30)
    processes: int | None = Field(default=None, ge=1, le=2**20)
    gpus: int | None = Field(default=None, ge=0, le=1024)
    llm_calls: int | None = Field(default=None, ge=0, le=2**53)
    llm_tokens: int | None = Field(default=None, ge=0, le=2**53)
    llm_cost_usd: float | None = Field(default=None, ge=0, le=1e9)
    dev_scores: int | None = Field(default=None, ge=0, le=2**20)
    on_budget: Literal["refuse", "stop"] | None = None
    retries: dict[RetriedCause, Annotated[int, Field(ge=0, le=100)]] | None = None


class HowToRun(Body):
    """Fields common to requests for a run and for a matrix of runs."""

    sandbox: Name | None = None
    limits: LimitsAsked = LimitsAsked()
    options: dict[str, Any] = Field(default={}, max_length=64)
    network: NetworkName | None = None
    grants: Grants = Grants()
    """Additional permissions for the agent, within those that the server's administrator allows."""
    secrets: list[SecretName] = Field(default=[], max_length=32)
    """Names of your own or the project's secrets that the agent gets as environment variables. However, `GIT_TOKEN` is
    used only to fetch its repository, and API keys of language models are used only by the gateway."""
    obfuscated: bool = False
    verify: bool | None = None
    """Whether the final code is executed again to verify the result; None: the server's default."""
    context: str | None = Field(default=None, max_length=200_000)
    project: Name | None = None
    """Id or name of the project; None means the caller's own."""
    priority: int = Field(default=0, ge=-100, le=100)
    """Among the user's own runs, those with higher priority start first."""
    preemptible: bool = False
    """Whether it starts only when no other run can, and is preempted by other runs: it is stopped, and restarted later
    with its full time limit. It does not count toward the user's share of the machine."""
    labels: dict[LabelName, Label] = Field(default={}, max_length=32)
    """Labels by name; names must not contain colons, since the filter is `label=name:value`."""


class RunRequest(HowToRun):
    """A request for a run."""

    task: Name
    agent: Name
    seed: Seed = 0


class KeptRequest(RunRequest):
    """A request as stored with its run."""

    project_secrets: bool = False
    """Whether only the project's secrets are used: the requesting user did not choose the code, or may not use their
    own."""
    traceparent: str | None = None
    """The span of the request, if traces are recorded."""

    @classmethod
    def of(cls, kept: dict[str, Any], *, chosen_by_caller: bool, **changes: Any) -> KeptRequest:
        """Return the request for a new run from a stored request."""
        only = kept.get("project_secrets", False) or not chosen_by_caller
        return cls.model_validate({**kept, **changes, "project_secrets": only})


class ExperimentRequest(HowToRun):
    """A request for a matrix of runs: each task with each agent (or arm of a plan) and each seed."""

    name: Label | None = None
    tasks: list[Name] = Field(default=[], max_length=1000)
    sets: list[Name] = Field(default=[], max_length=20)
    agents: list[Name] | None = Field(default=None, min_length=1, max_length=100)
    seeds: list[Seed] = Field(default=[0], min_length=1, max_length=1000)
    plan: Plan | None = None
    """A plan with arms, instead of `tasks`, `sets`, `agents`, `seeds` and the fields of `HowToRun`."""


class ExtensionRequest(Body):
    """More tasks and seeds for an experiment that was created from a plan."""

    tasks: list[Name] = Field(default=[], max_length=1000)
    """Ids of tasks, and sets as `set:NAME`."""
    seeds: list[Seed] = Field(default=[], max_length=1000)


class Change(BaseModel):
    """A change of an experiment after its creation."""

    time: datetime
    what: str
    results: int
    """Number of runs that had ended: a change after the first result is a deviation from the plan."""


class Spent(BaseModel):
    """Usage of the ended runs of an experiment with a budget."""

    cost_usd: float
    hours: float


class RunDetail(RunView):
    """A run with its report, once there is one."""

    report: Report | None = None
    queue: QueuePlace | None = None
    """Its place in the queue, while it is queued."""


class RunChange(Body):
    """Changes of a run; omitted fields stay unchanged."""

    labels: dict[LabelName, Label | None] | None = Field(default=None, max_length=32)
    """Labels to change; null removes one."""
    notes: str | None = Field(default=None, max_length=20_000)
    pinned: bool | None = None
    """Whether retention rules do not apply to it."""
    priority: int | None = Field(default=None, ge=-100, le=100)
    """Priority; only that of queued runs can be changed."""


class BulkRequest(Body):
    """A request for the same action on many runs."""

    action: Literal["cancel", "retry", "delete", "change"]
    runs: list[Name] = Field(min_length=1, max_length=500)
    change: RunChange | None = None
    """For the action `change`."""


class BulkResult(BaseModel):
    """The outcome for one run."""

    run: str
    """Id of the run; for a retry that created a new run, the new id."""
    ok: bool
    message: str | None
    """Why nothing was done."""


class BulkView(BaseModel):
    """The outcome for each run, in the requested order."""

    results: list[BulkResult]


class ExperimentDetail(ExperimentView):
    """A matrix with its runs."""

    plan: dict[str, Any] | None
    """The plan that it was created from, if any, without the texts of context files; extensions included."""
    changes: list[Change]
    spent: Spent | None
    """Usage so far; None if there is no budget, or before the first run has ended."""
    stopped: str | None
    """Why queued runs were cancelled, if a budget is used up."""
    runs: list[RunView]
