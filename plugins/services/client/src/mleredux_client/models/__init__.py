"""What a service says, as pydantic models: the names of mleredux's own, and room for fields of newer servers."""

from mleredux_client.models.account import Me, Project, Quota, Token, TokenInfo, Usage, User
from mleredux_client.models.base import Model
from mleredux_client.models.catalogue import Agent, Grader, Sandbox, Task, Technique
from mleredux_client.models.report import Ledger, LlmUse, Report, Verdict, VersionScore
from mleredux_client.models.rollout import (
    AgentInfo,
    ContentPart,
    FinalMetrics,
    Metrics,
    Observation,
    ObservationResult,
    Step,
    ToolCall,
    Trajectory,
)
from mleredux_client.models.run import (
    Artifact,
    BuildRecord,
    Event,
    ExperimentRecord,
    LogFile,
    RunRecord,
    Sample,
    State,
    SubmissionRecord,
)

__all__ = [
    "Agent",
    "AgentInfo",
    "Artifact",
    "BuildRecord",
    "ContentPart",
    "Event",
    "ExperimentRecord",
    "FinalMetrics",
    "Grader",
    "Ledger",
    "LlmUse",
    "LogFile",
    "Me",
    "Metrics",
    "Model",
    "Observation",
    "ObservationResult",
    "Project",
    "Quota",
    "Report",
    "RunRecord",
    "Sample",
    "Sandbox",
    "State",
    "Step",
    "SubmissionRecord",
    "Task",
    "Technique",
    "Token",
    "TokenInfo",
    "ToolCall",
    "Trajectory",
    "Usage",
    "User",
    "Verdict",
    "VersionScore",
]
