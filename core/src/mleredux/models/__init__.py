"""Pydantic models: the declarations of plugins, and the results of stages."""

from mleredux.models.agent import Agent, AgentFolder, Build, Limits, Smoke
from mleredux.models.base import Model
from mleredux.models.events import Event
from mleredux.models.execution import Environment, Execution
from mleredux.models.grader import FormInput, Grader, GradingInput, Score
from mleredux.models.grants import Grants
from mleredux.models.report import DiskLimit, HostUse, Ledger, LlmUse, Report, VersionScore
from mleredux.models.run import (
    CAUSES,
    Artifact,
    Attempts,
    Cause,
    CausePolicy,
    Manifest,
    NotSubmitted,
    Outcome,
    RunRecord,
    RunSpec,
    RunUse,
    State,
    Submitted,
    Unusable,
)
from mleredux.models.schema import Column, SubmissionSchema, Verdict
from mleredux.models.task import (
    Competition,
    KnownLeak,
    Metric,
    Resources,
    Submission,
    Task,
    Technique,
    Thresholds,
)
from mleredux.models.verdict import Evidence, ResultVerdict, Verification

__all__ = [
    "CAUSES",
    "Agent",
    "AgentFolder",
    "Artifact",
    "Attempts",
    "Build",
    "Cause",
    "CausePolicy",
    "Column",
    "Competition",
    "DiskLimit",
    "Environment",
    "Event",
    "Evidence",
    "Execution",
    "FormInput",
    "Grader",
    "GradingInput",
    "Grants",
    "HostUse",
    "KnownLeak",
    "Ledger",
    "Limits",
    "LlmUse",
    "Manifest",
    "Metric",
    "Model",
    "NotSubmitted",
    "Outcome",
    "Report",
    "Resources",
    "ResultVerdict",
    "RunRecord",
    "RunSpec",
    "RunUse",
    "Score",
    "Smoke",
    "State",
    "Submission",
    "SubmissionSchema",
    "Submitted",
    "Task",
    "Technique",
    "Thresholds",
    "Unusable",
    "Verdict",
    "Verification",
    "VersionScore",
]
