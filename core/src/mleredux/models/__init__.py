"""The lowest layer: pydantic models of plugin declarations, runs, and the results of their stages.

Nothing here imports the rest of mleredux, so programs that only read runs, like `mleredux_client`, need to import
nothing else.

- `base`: the class of all models: frozen, without unknown fields
- `formats`, `units`: durations, sizes and scores as text for people; durations and sizes from text
- `paths`: paths of any bytes as text
- `schema`, `grader`, `execution`, `task`: the declarations of tasks: submissions, metrics, environments
- `tool`, `agent`, `grants`: the declarations of agents, and the access they are granted
- `request`, `experiment`: requested runs: tasks, arms, seeds; the plan of an experiment
- `run`, `events`: a run's specification, states, outcome and artifacts; the lines of its log
- `verdict`, `report`: whether a result can be trusted; a graded submission
- `export`: formats for exporting runs
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mleredux.models.agent import Agent, AgentFolder, Build, Limits, Smoke
    from mleredux.models.base import Model, first_problem, read
    from mleredux.models.events import Event
    from mleredux.models.execution import Execution
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
        RunPlan,
        RunRecord,
        RunSpec,
        RunUse,
        Sample,
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

_HOME = {
    "agent": "Agent AgentFolder Build Limits Smoke",
    "base": "Model first_problem read",
    "events": "Event",
    "execution": "Execution",
    "grader": "FormInput Grader GradingInput Score",
    "grants": "Grants",
    "report": "DiskLimit HostUse Ledger LlmUse Report VersionScore",
    "run": "CAUSES Artifact Attempts Cause CausePolicy Manifest NotSubmitted Outcome RunPlan RunRecord RunSpec RunUse "
    "Sample State Submitted Unusable",
    "schema": "Column SubmissionSchema Verdict",
    "task": "Competition KnownLeak Metric Resources Submission Task Technique Thresholds",
    "verdict": "Evidence ResultVerdict Verification",
}
"""Names by module. Each is imported on first use, because `formats` and `units` do not need pydantic."""
_WHERE = {name: module for module, names in _HOME.items() for name in names.split()}

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
    "RunPlan",
    "RunRecord",
    "RunSpec",
    "RunUse",
    "Sample",
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
    "first_problem",
    "read",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
