"""For code that reads or writes rollouts: the trajectory of an agent as an ATIF document.

An agent's reader converts its native log to one::

    from pathlib import Path

    from mleredux.plugin.rollout import AgentInfo, Step, Trajectory, write_rollout

    def write(path: Path) -> None:
        steps = [Step(step_id=1, source="agent", message="I try a linear model.")]
        write_rollout(Trajectory(agent=AgentInfo(name="my-agent", version="1"), steps=steps), path)
"""

from __future__ import annotations

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
from mleredux._core.rollout.extras import RunExtra, StepExtra, SubmissionFact, run_extra, step_extra, with_run_extra
from mleredux._core.rollout.native import (
    add_usage,
    as_arguments,
    as_count,
    as_dict,
    as_list,
    as_number,
    as_objects,
    as_string,
    as_text,
    as_time,
    called,
    function_tool,
    read_below,
    read_lines,
    read_log,
    read_native,
    read_object,
    sum_usage,
    usage_of,
)
from mleredux.models.rollout import (
    SCHEMA_VERSION,
    AgentInfo,
    FinalMetrics,
    Metrics,
    Observation,
    ObservationResult,
    Step,
    ToolCall,
    Trajectory,
    text_of,
)

__all__ = [
    "MAX_BYTES",
    "SCHEMA_VERSION",
    "AgentInfo",
    "FinalMetrics",
    "InvalidRollout",
    "Metrics",
    "Observation",
    "ObservationResult",
    "RunExtra",
    "Step",
    "StepExtra",
    "SubmissionFact",
    "ToolCall",
    "Trajectory",
    "add_usage",
    "as_arguments",
    "as_count",
    "as_dict",
    "as_list",
    "as_number",
    "as_objects",
    "as_string",
    "as_text",
    "as_time",
    "called",
    "check_rollout",
    "dump_rollout",
    "function_tool",
    "parse_rollout",
    "problems_in",
    "read_below",
    "read_lines",
    "read_log",
    "read_native",
    "read_object",
    "read_rollout",
    "run_extra",
    "step_extra",
    "sum_usage",
    "text_of",
    "usage_of",
    "with_run_extra",
    "write_rollout",
]
