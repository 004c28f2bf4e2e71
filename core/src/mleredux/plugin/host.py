"""For services that prepare tasks, run agents and grade submissions, such as `mleredux-server`.

Scripts should use `mleredux.prepare`, `mleredux.run` and `mleredux.grade` instead::

    from mleredux.plugin.command import current
    from mleredux.plugin.host import grade, prepare
"""

from __future__ import annotations

from typing import Any

from mleredux._core import records as _records
from mleredux._core.data.checksums import CHECKSUMS_FILE as CHECKSUMS_FILE
from mleredux._core.data.datastore import LEADERBOARD_FILE as LEADERBOARD_FILE
from mleredux._core.data.datastore import SPOILED_FILE as SPOILED_FILE
from mleredux._core.data.datastore import Prepared as Prepared
from mleredux._core.loans import provide_secrets as provide_secrets
from mleredux._core.locations import is_prepared as is_prepared
from mleredux._core.moved import moved
from mleredux._core.pipeline import Pipeline as Pipeline
from mleredux._core.planning.grants import check_grants as check_grants
from mleredux._core.planning.grants import limit_grants as limit_grants
from mleredux._core.planning.grants import merge_grants as merge_grants
from mleredux._core.planning.grants import requests_of as requests_of
from mleredux._core.plugins.catalogue import set_current as set_current
from mleredux._core.records import agent_record as agent_record
from mleredux._core.records import task_record as task_record
from mleredux._core.resume import check_resumable as check_resumable
from mleredux._core.sandboxes import processes as _processes
from mleredux._core.sandboxes import slots as _slots
from mleredux._core.sandboxes.slots import Machine as Machine
from mleredux._core.sandboxes.slots import Slot as Slot
from mleredux._core.sandboxes.slots import Slots as Slots
from mleredux._core.sandboxes.variables import is_foreign as is_foreign
from mleredux._core.sandboxes.variables import protected_variables as protected_variables
from mleredux._core.sandboxes.variables import secret_values as secret_values
from mleredux._core.stages.context import StageContext as StageContext
from mleredux._core.stages.grade import Job as Job
from mleredux._core.stages.grade import grade as grade
from mleredux._core.stages.grade import make_report as make_report
from mleredux._core.stages.grade import score_in_child as score_in_child
from mleredux._core.stages.grade import score_in_children as score_in_children
from mleredux._core.stages.prepare import as_prepared as as_prepared
from mleredux._core.stages.prepare import prepare as prepare
from mleredux._core.stages.run_agent import run_agent as run_agent
from mleredux._core.stages.run_agent import run_in_sandbox as run_in_sandbox
from mleredux._core.store.run import read_ticket as read_ticket
from mleredux._core.store.run import write_ticket as write_ticket
from mleredux._core.submissions.files import submitted as submitted
from mleredux._core.submissions.schema import read_schema as read_schema
from mleredux._core.submissions.validation import validate as validate

list_records = _records.listed
process_birth = _processes.birth
machine_slots = _slots.machine

_GRADING = ("aggregate_reports", "read_jsonl", "regrade", "verify_run", "write_report")


def __getattr__(name: str) -> Any:
    return moved(__name__, "mleredux_grading" if name in _GRADING else "mleredux_executor_nodes.shared", depth=3)(name)
