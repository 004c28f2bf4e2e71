"""ATIF as pydantic models: exactly the fields and rules of Harbor's models."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from mleredux.models.base import Open
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    FailFast,
    Field,
    Tag,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

SchemaVersion = Literal[
    "ATIF-v1.0",
    "ATIF-v1.1",
    "ATIF-v1.2",
    "ATIF-v1.3",
    "ATIF-v1.4",
    "ATIF-v1.5",
    "ATIF-v1.6",
    "ATIF-v1.7",
    "ATIF-v1.8",
]
SCHEMA_VERSION: SchemaVersion = "ATIF-v1.8"
"""The version of the schema for new documents."""

ImageType = Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
AudioType = Literal[
    "audio/wav", "audio/mpeg", "audio/mp4", "audio/aac", "audio/ogg", "audio/flac", "audio/webm", "audio/aiff"
]

AGENT_ONLY = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")
"""Fields that only an agent's step may have."""
NO_CALL = ("metrics", "reasoning_content")
"""Fields that a step made without calling a language model (`llm_call_count` 0) cannot have."""

Extra = dict[str, Any]


class _First(FailFast):
    """Report only the first invalid item of a list, so that a hostile document can't cause a million errors."""

    __hash__ = object.__hash__  # members of a union need a title


_FIRST = _First()


def _broken(rule: str, sentence: str, **values: Any) -> PydanticCustomError:
    """Return an error for a broken rule. Its value `at`, if any, is the location under the model (`.steps[3]`)."""
    return PydanticCustomError(rule, sentence, values)


@classmethod  # type: ignore[misc]
def described(cls: type[BaseModel], schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
    """Return a model's JSON schema, with the docstrings of its fields as descriptions.

    Pydantic's `use_attribute_docstrings` would read the source of each model at every import.
    """
    import ast
    import inspect
    import textwrap
    from itertools import pairwise

    form = handler(schema)
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    for field, text in pairwise(body.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(content))):
                handler.resolve_ref_schema(form)["properties"][name]["description"] = inspect.cleandoc(content)
    return form


class _Part(BaseModel):
    """Base class of all parts of a document. Types are strict: `"1"` is not an integer, and `1` is not a string."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        ser_json_inf_nan="null",
    )
    __get_pydantic_json_schema__ = described

    @model_validator(mode="before")
    @classmethod
    def _has_not_a_million_unknown_fields(cls, value: Any) -> Any:
        """Reject floods of unknown fields: pydantic creates an error for each, which can take gigabytes."""
        if isinstance(value, dict) and len(value) > len(cls.model_fields) + 100:
            raise _broken("extra_forbidden_many", "most of these {n} fields are not part of the format", n=len(value))
        return value


class Source(_Part):
    """The location of an image or a recording."""

    media_type: Annotated[Literal[ImageType, AudioType], Open]
    path: str
    """A URL, or a path relative to the document."""
    duration_sec: Annotated[float, Field(ge=0)] | None = None
    """Duration in seconds, for recordings only."""


class ContentPart(_Part):
    """A part of a message with several kinds of content."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"type": {"const": "text"}}},
            "then": {
                "required": ["text"],
                "properties": {"text": {"type": "string"}, "source": {"type": "null"}},
            },
            "else": {
                "required": ["source"],
                "properties": {"text": {"type": "null"}, "source": {"type": "object"}},
            },
        }
    )

    type: Annotated[Literal["text", "image", "audio"], Open]
    text: str | None = None
    source: Source | None = None

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> ContentPart:
        if self.type == "text":
            if self.text is None or self.source is not None:
                raise _broken("content_part", "a part of type text has `text` and no `source`")
            return self
        if self.source is None or self.text is not None:
            raise _broken("content_part", "a part of type {type} has `source` and no `text`", type=self.type)
        if not self.source.media_type.startswith(f"{self.type}/"):
            sentence = "a part of type {type} can't hold {media_type}"
            raise _broken("content_part", sentence, type=self.type, media_type=self.source.media_type)
        if self.source.media_type in get_args(ImageType) and self.source.duration_sec is not None:
            raise _broken("content_part", "only a recording has a `duration_sec`")
        return self


def _branch_of(value: Any) -> str | None:
    if isinstance(value, str):
        return "<text>"
    if isinstance(value, list):
        return "<parts>"
    return "<number>" if isinstance(value, int | float) and not isinstance(value, bool) else None


BRANCHES = ("<text>", "<parts>", "<number>")
"""Names of union members, which pydantic includes in the location of an error."""

Message = Annotated[
    Annotated[str, Tag("<text>")] | Annotated[list[ContentPart], _FIRST, Tag("<parts>")],
    Discriminator(
        _branch_of,
        custom_error_type="message",
        custom_error_message="a message is text, or an array of parts",
    ),
]
Effort = Annotated[
    Annotated[str, Tag("<text>")] | Annotated[float, Tag("<number>")],
    Discriminator(_branch_of, custom_error_type="effort", custom_error_message="an effort is text or a number"),
]


class SubagentTrajectoryRef(_Part):
    """Points to the trajectory of an agent that this one started."""

    trajectory_id: str | None = None
    """Id of an embedded document in `Trajectory.subagent_trajectories`."""
    session_id: str | None = None
    """For information only; not used to resolve the reference."""
    trajectory_path: str | None = None
    """A file or URL."""
    extra: Extra | None = None

    @model_validator(mode="after")
    def _check_target(self) -> SubagentTrajectoryRef:
        if self.trajectory_id is None and self.trajectory_path is None:
            raise _broken("subagent_ref", "a reference needs `trajectory_id` or `trajectory_path`")
        return self


class ToolCall(_Part):
    """An action taken by the agent, such as a call to a tool."""

    tool_call_id: str  #: Links the action to its result.
    function_name: str  #: The name of the tool.
    arguments: dict[str, Any]  #: The arguments of the tool, by name.
    extra: Extra | None = None  #: Further facts.


class ObservationResult(_Part):
    """The result of one action."""

    source_call_id: str | None = None
    """The `tool_call_id` of an action of the same step; None if the result does not belong to an action."""
    content: Message | None = None  #: The text, or parts with images.
    subagent_trajectory_ref: Annotated[list[SubagentTrajectoryRef], _FIRST] | None = None  #: Agents that were started.
    extra: Extra | None = None  #: Further facts.


class Observation(_Part):
    """The results that the environment returned."""

    results: Annotated[list[ObservationResult], _FIRST]  #: One result per action.


class Metrics(_Part):
    """Tokens and cost of one step's calls to language models."""

    prompt_tokens: int | None = None
    """Prompt tokens, including cached ones."""
    completion_tokens: int | None = None  #: Generated tokens.
    cached_tokens: int | None = None  #: Prompt tokens read from a cache.
    cost_usd: float | None = None  #: Cost in US dollars.
    prompt_token_ids: Annotated[list[int], _FIRST] | None = None  #: Ids of the prompt's tokens.
    completion_token_ids: Annotated[list[int], _FIRST] | None = None  #: Ids of the generated tokens.
    logprobs: Annotated[list[float], _FIRST] | None = None  #: Log-probabilities, one per generated token.
    extra: Extra | None = None  #: Further facts.


class FinalMetrics(_Part):
    """Tokens and cost of the whole trajectory."""

    total_prompt_tokens: int | None = None  #: Prompt tokens, including cached ones.
    total_completion_tokens: int | None = None  #: Generated tokens.
    total_cached_tokens: int | None = None  #: Prompt tokens read from a cache.
    total_cost_usd: float | None = None  #: Cost in US dollars.
    total_steps: Annotated[int, Field(ge=0)] | None = None
    """May differ from the number of steps in the document if copied context is not counted."""
    extra: Extra | None = None  #: Further facts.


class Step(_Part):
    """One turn: of the system, of a user, or of the agent with its actions and their results."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                {
                    "if": {"properties": {"source": {"enum": ["system", "user"]}}},
                    "then": {"properties": {name: {"type": "null"} for name in AGENT_ONLY}},
                },
                {
                    "if": {"properties": {"llm_call_count": {"const": 0}}, "required": ["llm_call_count"]},
                    "then": {"properties": {name: {"type": "null"} for name in NO_CALL}},
                },
            ]
        }
    )

    step_id: Annotated[int, Field(ge=1)]
    """1 for the first step of a document, incremented by one for each step."""
    timestamp: str | None = None
    """Time of the step in ISO 8601 format."""
    source: Annotated[Literal["system", "user", "agent"], Open]  #: Who acted.
    model_name: str | None = None  #: The model that was called.
    reasoning_effort: Effort | None = None  #: The effort requested of the model.
    message: Message  #: The text, or parts with images.
    reasoning_content: str | None = None  #: The reasoning that the model returned.
    tool_calls: Annotated[list[ToolCall], _FIRST] | None = None  #: The actions of the step.
    observation: Observation | None = None  #: The results of the actions.
    metrics: Metrics | None = None  #: Tokens and cost of the step.
    is_copied_context: bool | None = None
    """Whether the step is a copy from an earlier document, included for context."""
    llm_call_count: Annotated[int, Field(ge=0)] | None = None
    """Number of language model calls behind this step; 0 if there were none, None if unknown."""
    extra: Extra | None = None
    """Fields for ML engineering, as in `mleredux_rollout.StepExtra`."""

    @field_validator("timestamp")
    @classmethod
    def _is_a_time(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                datetime.fromisoformat(value)
            except ValueError:
                raise _broken("timestamp", "a timestamp is an ISO 8601 date and time") from None
        return value

    @model_validator(mode="after")
    def _fields_fit_the_source(self) -> Step:
        for name in AGENT_ONLY:
            if self.source != "agent" and getattr(self, name) is not None:
                sentence = "belongs only to steps whose source is agent, not {source}"
                raise _broken("agent_only", sentence, at=f".{name}", source=self.source)
        for name in NO_CALL:
            if self.source == "agent" and self.llm_call_count == 0 and getattr(self, name) is not None:
                raise _broken("llm_call_count", "is not allowed if `llm_call_count` is 0", at=f".{name}")
        return self

    @model_validator(mode="after")
    def _results_name_calls_of_this_step(self) -> Step:
        known = {call.tool_call_id for call in self.tool_calls or ()}
        for index, result in enumerate(self.observation.results if self.observation else ()):
            if result.source_call_id is not None and result.source_call_id not in known:
                at = f".observation.results[{index}].source_call_id"
                raise _broken("source_call_id", "does not match a tool call of this step", at=at)
        return self


class AgentInfo(_Part):
    """The agent that acted."""

    name: str  #: The name of the agent.
    version: str  #: The version of the agent.
    model_name: str | None = None
    """The default model; a step may name another."""
    tool_definitions: Annotated[list[dict[str, Any]], _FIRST] | None = None
    """Tool definitions in OpenAI's function schema."""
    extra: Extra | None = None  #: Further facts.


class Trajectory(_Part):
    """An ATIF document."""

    schema_version: Annotated[SchemaVersion, Open] = SCHEMA_VERSION  #: The version of the format.
    session_id: str | None = None
    """The run's id in `rollout.json`; several documents may share it. An agent's own session id is kept in `extra`."""
    trajectory_id: str | None = None
    """The id of this document (in `rollout.json`, the run's id); required if it is embedded in another document."""
    agent: AgentInfo  #: The agent that acted.
    steps: Annotated[list[Step], _FIRST, Field(min_length=1)]  #: The steps, in order.
    notes: str | None = None  #: Remarks on the document.
    final_metrics: FinalMetrics | None = None  #: Tokens and cost of all steps.
    continued_trajectory_ref: str | None = None
    """The file that continues the trajectory."""
    extra: Extra | None = None
    """For ML engineering: the key `mleredux` holds the fields of `mleredux_rollout.RunExtra`."""
    subagent_trajectories: Annotated[list[Trajectory], _FIRST] | None = None  #: Agents started by this agent.

    @model_validator(mode="after")
    def _steps_are_counted_from_one(self) -> Trajectory:
        for index, step in enumerate(self.steps):
            if step.step_id != index + 1:
                sentence = "must be {wanted}, not {found}: steps are numbered from 1 without gaps"
                at = f".steps[{index}].step_id"
                raise _broken("step_id", sentence, at=at, wanted=index + 1, found=step.step_id)
        return self

    @model_validator(mode="after")
    def _check_embedded_ids(self) -> Trajectory:
        names = [embedded.trajectory_id for embedded in self.subagent_trajectories or ()]
        seen: set[str] = set()
        for index, name in enumerate(names):
            at = f".subagent_trajectories[{index}].trajectory_id"
            if name is None:
                raise _broken("trajectory_id", "is required in an embedded trajectory", at=at)
            if name in seen:
                raise _broken("trajectory_id", "is also used by another embedded trajectory", at=at)
            seen.add(name)
        return self


def text_of(message: Message | None) -> str:
    """Return the text of a message, with images and recordings as `[image: path]`."""
    if message is None:
        return ""
    if isinstance(message, str):
        return message
    pieces = [
        part.text if part.text is not None else f"[{part.type}: {part.source.path if part.source else ''}]"
        for part in message
    ]
    return "\n".join(pieces)
