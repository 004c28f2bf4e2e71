"""The standard trace of a run: ATIF documents (v1.8; v1.0 to v1.8 are read), their checker and JSON schema.

The Agent Trajectory Interchange Format is Harbor's (harborframework.com/docs/trajectory-format). What is
particular to ML engineering goes into its `extra` fields, by the convention of `StepExtra` and `RunExtra`.
"""

from mleredux._core.rollout.documents import (
    MAX_BYTES,
    InvalidRollout,
    check_rollout,
    dump_rollout,
    parse_rollout,
    problems_in,
    read_rollout,
    write_rollout,
)
from mleredux._core.rollout.extras import (
    RunExtra,
    StepExtra,
    SubmissionFact,
    json_schema,
    run_extra,
    step_extra,
    with_run_extra,
)
from mleredux._core.rollout.models import (
    SCHEMA_VERSION,
    AgentInfo,
    ContentPart,
    FinalMetrics,
    Metrics,
    Observation,
    ObservationResult,
    Source,
    Step,
    SubagentTrajectoryRef,
    ToolCall,
    Trajectory,
    text_of,
)
from mleredux._core.rollout.validation import Problem

__all__ = [
    "MAX_BYTES",
    "SCHEMA_VERSION",
    "AgentInfo",
    "ContentPart",
    "FinalMetrics",
    "InvalidRollout",
    "Metrics",
    "Observation",
    "ObservationResult",
    "Problem",
    "RunExtra",
    "Source",
    "Step",
    "StepExtra",
    "SubagentTrajectoryRef",
    "SubmissionFact",
    "ToolCall",
    "Trajectory",
    "check_rollout",
    "dump_rollout",
    "json_schema",
    "parse_rollout",
    "problems_in",
    "read_rollout",
    "run_extra",
    "step_extra",
    "text_of",
    "with_run_extra",
    "write_rollout",
]
