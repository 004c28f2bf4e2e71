"""For code that reads or writes rollouts, reads the programs and actions of agents, or exports runs to other systems.

| module | content |
|---|---|
| `models` | an agent's trajectory, as an ATIF document |
| `documents` | reading, checking and writing of rollouts |
| `validation` | the rules of a valid rollout |
| `extras` | mleredux's additions to rollouts: facts about a run and its steps |
| `native` | safe reading of agents' own logs |
| `texts` | programs, actions and log of a run as texts |
| `scopes` | names and constants of a program |
| `beside` | the files next to a program that belong to it |
| `notebook` | the program that runs a notebook in an agent's environment |
| `exports` | runs without their secrets, for formats |
| `judge` | a language model that reads agents' texts, with its own budget |

A rollout is the trajectory of an agent as an ATIF document; an agent's reader converts its native log to one::

    from pathlib import Path

    from mleredux_rollout import AgentInfo, Step, Trajectory, write_rollout

    def write(path: Path) -> None:
        steps = [Step(step_id=1, source="agent", message="I try a linear model.")]
        write_rollout(Trajectory(agent=AgentInfo(name="my-agent", version="1"), steps=steps), path)
"""

from __future__ import annotations

from mleredux.models.export import Format

from mleredux_rollout.beside import LEFT_OUT, Beside, files_beside, find_beside
from mleredux_rollout.documents import (
    MAX_BYTES,
    InvalidRollout,
    check_rollout,
    dump_rollout,
    parse_rollout,
    problems_in,
    read_rollout,
    write_rollout,
)
from mleredux_rollout.exports import ExportedRun, Filters, export
from mleredux_rollout.extras import RunExtra, StepExtra, SubmissionFact, run_extra, step_extra, with_run_extra
from mleredux_rollout.judge import BudgetExhausted, open_judge
from mleredux_rollout.models import (
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
from mleredux_rollout.native import (
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
from mleredux_rollout.scopes import Scope
from mleredux_rollout.texts import MAX_LINE, MAX_TEXT, Kind, Text, code_of, notebook_runner, plain_code, texts_of

__all__ = [
    "LEFT_OUT",
    "MAX_BYTES",
    "MAX_LINE",
    "MAX_TEXT",
    "SCHEMA_VERSION",
    "AgentInfo",
    "Beside",
    "BudgetExhausted",
    "ExportedRun",
    "Filters",
    "FinalMetrics",
    "Format",
    "InvalidRollout",
    "Kind",
    "Metrics",
    "Observation",
    "ObservationResult",
    "RunExtra",
    "Scope",
    "Step",
    "StepExtra",
    "SubmissionFact",
    "Text",
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
    "code_of",
    "dump_rollout",
    "export",
    "files_beside",
    "find_beside",
    "function_tool",
    "notebook_runner",
    "open_judge",
    "parse_rollout",
    "plain_code",
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
    "texts_of",
    "usage_of",
    "with_run_extra",
    "write_rollout",
]
