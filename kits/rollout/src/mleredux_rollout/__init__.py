"""For code that reads or writes rollouts, reads the programs and actions of agents, or exports runs to other systems.

| module | content |
|---|---|
| `models` | an agent's trajectory, as an ATIF document |
| `documents` | reading, checking and writing of rollouts; the problems of a document |
| `extras` | mleredux's additions to rollouts: facts about a run and its steps |
| `native` | safe reading of agents' own logs |
| `texts` | programs, actions and log of a run as texts |
| `scopes` | names and constants of a program |
| `beside` | the files next to a program that belong to it |
| `notebook` | the program that runs a notebook in an agent's environment |
| `exports` | runs without their secrets, for formats |
| `judge` | a language model that reads agents' texts, with its own budget |

A rollout is the trajectory of an agent as an ATIF document; readers convert agents' native logs to rollouts::

    from pathlib import Path

    from mleredux_rollout import AgentInfo, Step, Trajectory, write_rollout

    def write(path: Path) -> None:
        steps = [Step(step_id=1, source="agent", message="I try a linear model.")]
        write_rollout(Trajectory(agent=AgentInfo(name="my-agent", version="1"), steps=steps), path)
"""

from __future__ import annotations

from mleredux.models.export import Format as Format

from mleredux_rollout.beside import LEFT_OUT as LEFT_OUT
from mleredux_rollout.beside import Beside as Beside
from mleredux_rollout.beside import files_beside as files_beside
from mleredux_rollout.beside import find_beside as find_beside
from mleredux_rollout.documents import MAX_BYTES as MAX_BYTES
from mleredux_rollout.documents import InvalidRollout as InvalidRollout
from mleredux_rollout.documents import check_rollout as check_rollout
from mleredux_rollout.documents import dump_rollout as dump_rollout
from mleredux_rollout.documents import parse_rollout as parse_rollout
from mleredux_rollout.documents import problems_in as problems_in
from mleredux_rollout.documents import read_rollout as read_rollout
from mleredux_rollout.documents import write_rollout as write_rollout
from mleredux_rollout.exports import ExportedRun as ExportedRun
from mleredux_rollout.exports import Filters as Filters
from mleredux_rollout.exports import export as export
from mleredux_rollout.extras import RunExtra as RunExtra
from mleredux_rollout.extras import StepExtra as StepExtra
from mleredux_rollout.extras import SubmissionFact as SubmissionFact
from mleredux_rollout.extras import run_extra as run_extra
from mleredux_rollout.extras import step_extra as step_extra
from mleredux_rollout.extras import with_run_extra as with_run_extra
from mleredux_rollout.judge import BudgetExhausted as BudgetExhausted
from mleredux_rollout.judge import open_judge as open_judge
from mleredux_rollout.models import SCHEMA_VERSION as SCHEMA_VERSION
from mleredux_rollout.models import AgentInfo as AgentInfo
from mleredux_rollout.models import FinalMetrics as FinalMetrics
from mleredux_rollout.models import Metrics as Metrics
from mleredux_rollout.models import Observation as Observation
from mleredux_rollout.models import ObservationResult as ObservationResult
from mleredux_rollout.models import Step as Step
from mleredux_rollout.models import ToolCall as ToolCall
from mleredux_rollout.models import Trajectory as Trajectory
from mleredux_rollout.models import text_of as text_of
from mleredux_rollout.native import add_usage as add_usage
from mleredux_rollout.native import as_arguments as as_arguments
from mleredux_rollout.native import as_count as as_count
from mleredux_rollout.native import as_dict as as_dict
from mleredux_rollout.native import as_list as as_list
from mleredux_rollout.native import as_number as as_number
from mleredux_rollout.native import as_objects as as_objects
from mleredux_rollout.native import as_string as as_string
from mleredux_rollout.native import as_text as as_text
from mleredux_rollout.native import as_time as as_time
from mleredux_rollout.native import called as called
from mleredux_rollout.native import function_tool as function_tool
from mleredux_rollout.native import read_below as read_below
from mleredux_rollout.native import read_lines as read_lines
from mleredux_rollout.native import read_log as read_log
from mleredux_rollout.native import read_native as read_native
from mleredux_rollout.native import read_object as read_object
from mleredux_rollout.native import sum_usage as sum_usage
from mleredux_rollout.native import usage_of as usage_of
from mleredux_rollout.scopes import Scope as Scope
from mleredux_rollout.texts import MAX_LINE as MAX_LINE
from mleredux_rollout.texts import MAX_TEXT as MAX_TEXT
from mleredux_rollout.texts import Kind as Kind
from mleredux_rollout.texts import Text as Text
from mleredux_rollout.texts import code_of as code_of
from mleredux_rollout.texts import notebook_runner as notebook_runner
from mleredux_rollout.texts import parse_python as parse_python
from mleredux_rollout.texts import plain_code as plain_code
from mleredux_rollout.texts import read_files as read_files
from mleredux_rollout.texts import steps_of as steps_of
from mleredux_rollout.texts import texts_of as texts_of
