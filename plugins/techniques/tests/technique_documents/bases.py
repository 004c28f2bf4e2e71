"""The task that a dataset belongs to, as far as efficacy needs it."""

from __future__ import annotations

from pathlib import Path

from mleredux.plugin.task import Metric, Submission, Task
from mleredux_techniques.kit import Dataset


def base_of(dataset: Dataset) -> Task:
    """A task with the metric of a dataset, without options."""
    return Task(
        id="base",
        title="Base",
        description=Path(__file__),
        submission=Submission(target_columns=dataset.outputs),
        metric=Metric(grader=dataset.metric or ("rmse" if dataset.problem == "regression" else "accuracy")),
        direction=dataset.direction,
    )
