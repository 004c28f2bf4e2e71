"""The standard step-by-step trace of a run: an ATIF document, read leniently."""

from __future__ import annotations

from typing import Any

from mleredux_client.models.base import Model


class ContentPart(Model):
    """A piece of a message of several kinds."""

    type: str
    text: str | None = None
    source: dict[str, Any] | None = None


Message = str | list[ContentPart]


class ToolCall(Model):
    """An action of the agent."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]
    extra: dict[str, Any] | None = None


class ObservationResult(Model):
    """What came back from one action."""

    source_call_id: str | None = None
    content: Message | None = None
    subagent_trajectory_ref: list[dict[str, Any]] | None = None
    extra: dict[str, Any] | None = None


class Observation(Model):
    """What came back from the environment."""

    results: list[ObservationResult]


class Metrics(Model):
    """What one step's calls of a language model took."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    prompt_token_ids: list[int] | None = None
    completion_token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    extra: dict[str, Any] | None = None


class FinalMetrics(Model):
    """What the whole trajectory took."""

    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None
    total_steps: int | None = None
    extra: dict[str, Any] | None = None


class Step(Model):
    """One turn: of the system, of a user, or of the agent with its actions and what came back."""

    step_id: int
    timestamp: str | None = None
    source: str
    model_name: str | None = None
    reasoning_effort: str | float | None = None
    message: Message
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: int | None = None
    extra: dict[str, Any] | None = None


class AgentInfo(Model):
    """Who acted."""

    name: str
    version: str
    model_name: str | None = None
    tool_definitions: list[dict[str, Any]] | None = None
    extra: dict[str, Any] | None = None


class Trajectory(Model):
    """An ATIF document."""

    schema_version: str
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: AgentInfo
    steps: list[Step]
    notes: str | None = None
    final_metrics: FinalMetrics | None = None
    continued_trajectory_ref: str | None = None
    extra: dict[str, Any] | None = None
    subagent_trajectories: list[Trajectory] | None = None
