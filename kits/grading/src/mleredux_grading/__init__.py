"""For programs that grade many submissions at once, in MLE-bench's format, or grade ended runs again.

| module | contents |
|---|---|
| `jsonl` | reading and grading MLE-bench's `submission.jsonl`, and writing its grading report |
| `grading_reports` | reading grading reports |
| `copies` | submissions that are copies of a public file or of the answers |
| `ended_runs` | grading ended runs again, and verifying them |

A grading report has MLE-bench's keys: totals, and the report of each submission::

    from mleredux_grading import aggregate_reports

    assert aggregate_reports([])["total_runs"] == 0
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.models.imports import on_first_use

if TYPE_CHECKING:
    from mleredux_grading.ended_runs import regrade as regrade
    from mleredux_grading.ended_runs import verify_run as verify_run
    from mleredux_grading.grading_reports import read_report as read_report
    from mleredux_grading.jsonl import Listed as Listed
    from mleredux_grading.jsonl import aggregate_reports as aggregate_reports
    from mleredux_grading.jsonl import grade_jsonl as grade_jsonl
    from mleredux_grading.jsonl import grade_listed as grade_listed
    from mleredux_grading.jsonl import read_jsonl as read_jsonl
    from mleredux_grading.jsonl import write_report as write_report

_HOMES = {
    ".jsonl": "Listed aggregate_reports grade_jsonl grade_listed read_jsonl write_report",
    ".grading_reports": "read_report",
    ".ended_runs": "regrade verify_run",
}
"""Names by module; each is imported on first use, because clients only read and write these files."""
__getattr__, __all__ = on_first_use(__name__, _HOMES)
