"""The lowest layer: pydantic models of plugin declarations, runs, and the results of their stages.

Nothing here imports the rest of mleredux, so programs that only read runs, like `mleredux_client`, need to import
nothing else.

- `base`: the class of all models: frozen, without unknown fields
- `formats`, `units`: durations, sizes and scores as text for people; durations and sizes from text
- `paths`: paths of any bytes as text
- `schema`, `grader`, `task`: the declarations of tasks: submissions, metrics, environments
- `agent`: the declarations of agents and their tools, and the access they are granted
- `request`, `experiment`: requested runs: tasks, arms, seeds; the plan of an experiment
- `run`, `events`: a run's specification, states, outcome and artifacts; the lines of its log
- `verdict`, `report`: whether a result can be trusted; a graded submission
- `export`: formats for exporting runs
- `imports`: names that a package imports on first use
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.models.imports import on_first_use

if TYPE_CHECKING:
    from mleredux.models.agent import Agent as Agent
    from mleredux.models.agent import AgentFolder as AgentFolder
    from mleredux.models.agent import Build as Build
    from mleredux.models.agent import Grants as Grants
    from mleredux.models.agent import Limits as Limits
    from mleredux.models.agent import Smoke as Smoke
    from mleredux.models.base import Model as Model
    from mleredux.models.base import first_problem as first_problem
    from mleredux.models.base import read as read
    from mleredux.models.events import Event as Event
    from mleredux.models.grader import Execution as Execution
    from mleredux.models.grader import FormInput as FormInput
    from mleredux.models.grader import Grader as Grader
    from mleredux.models.grader import GradingInput as GradingInput
    from mleredux.models.grader import Score as Score
    from mleredux.models.report import DiskLimit as DiskLimit
    from mleredux.models.report import HostUse as HostUse
    from mleredux.models.report import Ledger as Ledger
    from mleredux.models.report import LlmUse as LlmUse
    from mleredux.models.report import Report as Report
    from mleredux.models.report import VersionScore as VersionScore
    from mleredux.models.run import CAUSES as CAUSES
    from mleredux.models.run import Artifact as Artifact
    from mleredux.models.run import Attempts as Attempts
    from mleredux.models.run import Cause as Cause
    from mleredux.models.run import CausePolicy as CausePolicy
    from mleredux.models.run import Manifest as Manifest
    from mleredux.models.run import NotSubmitted as NotSubmitted
    from mleredux.models.run import Outcome as Outcome
    from mleredux.models.run import RunPlan as RunPlan
    from mleredux.models.run import RunRecord as RunRecord
    from mleredux.models.run import RunSpec as RunSpec
    from mleredux.models.run import RunUse as RunUse
    from mleredux.models.run import Sample as Sample
    from mleredux.models.run import State as State
    from mleredux.models.run import Submitted as Submitted
    from mleredux.models.run import Unusable as Unusable
    from mleredux.models.schema import Column as Column
    from mleredux.models.schema import SubmissionSchema as SubmissionSchema
    from mleredux.models.schema import Verdict as Verdict
    from mleredux.models.task import Competition as Competition
    from mleredux.models.task import KnownLeak as KnownLeak
    from mleredux.models.task import Metric as Metric
    from mleredux.models.task import Resources as Resources
    from mleredux.models.task import Submission as Submission
    from mleredux.models.task import Task as Task
    from mleredux.models.task import Technique as Technique
    from mleredux.models.task import Thresholds as Thresholds
    from mleredux.models.verdict import Evidence as Evidence
    from mleredux.models.verdict import ResultVerdict as ResultVerdict
    from mleredux.models.verdict import Verification as Verification

_HOMES = {
    ".agent": "Agent AgentFolder Build Grants Limits Smoke",
    ".base": "Model first_problem read",
    ".events": "Event",
    ".grader": "Execution FormInput Grader GradingInput Score",
    ".report": "DiskLimit HostUse Ledger LlmUse Report VersionScore",
    ".run": "CAUSES Artifact Attempts Cause CausePolicy Manifest NotSubmitted Outcome RunPlan RunRecord RunSpec RunUse "
    "Sample State Submitted Unusable",
    ".schema": "Column SubmissionSchema Verdict",
    ".task": "Competition KnownLeak Metric Resources Submission Task Technique Thresholds",
    ".verdict": "Evidence ResultVerdict Verification",
}
"""Names by module. Each is imported on first use, because `formats` and `units` do not need pydantic."""
__getattr__, __all__ = on_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
