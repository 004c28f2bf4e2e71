"""The task that a dataset belongs to, as far as efficacy needs it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
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


def rare() -> Dataset:
    """Independent rows of which some 6 % are positive."""
    rng = np.random.default_rng(3)
    x = rng.normal(0, 1, (1_200, 4))
    positive = rng.random(1_200) < 1 / (1 + np.exp(4.2 - 1.5 * x[:, 0] - x[:, 1]))
    columns = {f"x{number}": x[:, number] for number in range(4)}
    frame = pd.DataFrame({**columns, "y": np.where(positive, "1", "0").astype(object)})
    return Dataset(
        task="rare", problem="binary", target="y", targets=("y",), outputs=("y",), ids=(), features=tuple(columns),
        train=frame[:900].reset_index(drop=True), test=frame[900:].reset_index(drop=True),
        kinds=dict.fromkeys(columns, "number"),
    )  # fmt: skip
