"""For services that prepare tasks, run agents and grade submissions, such as `mleredux-server`.

Scripts should use `mleredux.prepare`, `mleredux.run` and `mleredux.grade` instead::

    from mleredux.plugin.command import current
    from mleredux.plugin.host import grade, prepare
"""

from __future__ import annotations

from mleredux._core.data.checksums import MEMORY_FILE as CHECKSUMS_FILE
from mleredux._core.data.datastore import LEADERBOARD_FILE, SPOILED_FILE, Prepared
from mleredux._core.loans import lend
from mleredux._core.locations import looks_prepared
from mleredux._core.moved import moved
from mleredux._core.pipeline import Pipeline
from mleredux._core.planning.grants import asks_of, check_grants, joined, within
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.records import agent_record, task_record
from mleredux._core.records import listed as list_records
from mleredux._core.resume import check_resumable
from mleredux._core.sandboxes.processes import birth as process_birth
from mleredux._core.sandboxes.slots import Machine, Slot, Slots
from mleredux._core.sandboxes.slots import machine as machine_slots
from mleredux._core.sandboxes.variables import is_foreign, protected_variables, secret_values
from mleredux._core.stages.context import StageContext
from mleredux._core.stages.grade import Job, ask_child, grade, make_report, score_in_children
from mleredux._core.stages.jsonl import aggregate as aggregate_reports
from mleredux._core.stages.jsonl import read_listed as read_jsonl
from mleredux._core.stages.jsonl import write_report
from mleredux._core.stages.prepare import as_prepared, prepare
from mleredux._core.stages.regrade import regrade
from mleredux._core.stages.run_agent import run_agent, run_in_sandbox
from mleredux._core.stages.verify_run import verify_run
from mleredux._core.store.run import read_ticket, write_ticket
from mleredux._core.submissions.files import submitted
from mleredux._core.submissions.schema import read_schema
from mleredux._core.submissions.validation import validate

__all__ = [
    "CHECKSUMS_FILE",
    "LEADERBOARD_FILE",
    "SPOILED_FILE",
    "Job",
    "Machine",
    "Pipeline",
    "Prepared",
    "Slot",
    "Slots",
    "StageContext",
    "agent_record",
    "aggregate_reports",
    "as_prepared",
    "ask_child",
    "asks_of",
    "check_grants",
    "check_resumable",
    "grade",
    "is_foreign",
    "joined",
    "lend",
    "list_records",
    "looks_prepared",
    "machine_slots",
    "make_report",
    "prepare",
    "process_birth",
    "protected_variables",
    "read_jsonl",
    "read_schema",
    "read_ticket",
    "regrade",
    "run_agent",
    "run_in_sandbox",
    "score_in_children",
    "secret_values",
    "set_current",
    "submitted",
    "task_record",
    "validate",
    "verify_run",
    "within",
    "write_report",
    "write_ticket",
]

__getattr__ = moved(__name__, "mleredux_executor_nodes.shared")
