"""The grader that checks a task's submissions."""

from __future__ import annotations

from mleredux.errors import NotFound
from mleredux.models import Grader, Task


def grader_of(task: Task) -> Grader | None:
    """The grader of a task; None where it is not installed."""
    from mleredux._core.plugins import current

    grader = task.metric.grader
    try:
        return current().grader(grader) if isinstance(grader, str) else grader
    except NotFound:
        return None
