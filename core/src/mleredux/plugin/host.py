"""TODO host"""

from __future__ import annotations

from mleredux._core.locations import looks_prepared
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.records import agent_record, listed, task_record
from mleredux._core.sandboxes.processes import birth
from mleredux._core.sandboxes.slots import Slot, Slots, machine
from mleredux._core.stages.grade import grade
from mleredux._core.stages.jsonl import aggregate, read_listed, write_report
from mleredux._core.stages.prepare import prepare
from mleredux._core.submissions.schema import read_schema
from mleredux._core.submissions.validation import validate

__all__ = [
    "Slot",
    "Slots",
    "agent_record",
    "aggregate",
    "birth",
    "grade",
    "listed",
    "looks_prepared",
    "machine",
    "prepare",
    "read_listed",
    "read_schema",
    "set_current",
    "task_record",
    "validate",
    "write_report",
]
