"""A task's tables as advised, and pipelines fitted to them, for the agent and for `solution.py`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from mleredux_agent_baseline.kit import (
    Array,
    Candidate,
    Choice,
    Facts,
    Prepared,
    fit_predict,
    mix,
    profile_of,
    useful_threads,
    write_submission,
)

from mleredux_agent_automl.advice import Advice
from mleredux_agent_automl.pipelines import Choices, estimator, table_of

Blend = list[list[Choice]]
"""The pipelines of each target by name, with their weights."""


class Table:
    """The rows, columns and targets to learn from, according to the advice.

    Args:
        deadline: Unix time at which images must be read; images not read by then are left out.

    Attributes:
        rows: The training rows with all columns, as in the table.
        train, test: The columns used, cleaned row by row.
        dropped: Columns excluded by advice.

    Raises:
        NotForBaseline: There is no table to learn from.
        ValueError: No column is left.
    """

    def __init__(
        self, data_dir: Path, facts: Facts, advice: Advice, *, seed: int, cpus: int, memory_mb: float, max_rows: int,
        deadline: float = float("inf"),
    ) -> None:  # fmt: skip
        self.advice, self.metric, self.seed = advice, facts.metric, seed
        prepared = self.prepared = Prepared(
            data_dir, facts, seed=seed, memory_mb=memory_mb, max_rows=max_rows, deadline=deadline
        )
        self.heads, self.threads = prepared.heads, useful_threads(prepared, cpus)
        names = [str(name) for name in prepared.train if name not in advice.drop_columns]
        self.dropped = [str(name) for name in prepared.train if name not in names]
        if not names:
            raise ValueError("no column is left")
        train, rows = prepared.train[names], prepared.tables.train.iloc[prepared.problem.rows].reset_index(drop=True)
        if advice.drop_shared_rows:
            kept = ~_shared(train, prepared.test[names])
            train, rows = train[kept].reset_index(drop=True), rows[kept].reset_index(drop=True)
            for head in self.heads:
                head.y = head.y[kept]
        self.rows = rows
        profile = profile_of(train, names)
        self.train, self.test, self.columns = table_of((train, prepared.test[names]), profile, advice)

    def fit(self, choices: Choices, place: int, rows: Array, others: list[Any]) -> list[Array]:
        """Fit a pipeline to some rows for one target, and predict others; numbers are clipped to the known range.

        Raises:
            Exception: Any error of a model, and ValueError for predictions that are not finite.
        """
        head = self.heads[place]
        model = estimator(
            choices, self.columns, self.advice, classes=bool(head.classes), joint=head.y.ndim == 2, seed=self.seed
        )
        candidate = Candidate("pipeline", "table", lambda seed, threads: model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predictions = fit_predict(
                candidate, head, self.train.iloc[rows], rows, others, self.metric, self.seed, self.threads
            )
        if not all(np.isfinite(values).all() for values in predictions):
            raise ValueError("the pipeline predicts numbers that are not finite")
        if head.classes:
            return predictions
        return [np.clip(values, head.y.min(axis=0), head.y.max(axis=0)) for values in predictions]

    def predict(self, choices: Choices) -> list[Array]:
        """Predict the test rows for each target, with a pipeline fitted to all training rows."""
        everything = np.arange(len(self.train))
        return [self.fit(choices, place, everything, [self.test])[0] for place in range(len(self.heads))]

    def write(self, submission: Path, blend: Blend, predictions: dict[str, list[Array]]) -> None:
        """Write the submission: for each target, the weighted mean of the pipelines' predictions."""
        mixed = [
            mix({name: values[place] for name, values in predictions.items()}, choices)
            for place, choices in enumerate(blend)
        ]
        write_submission(self.prepared.tables.sample_path, submission, self.heads, mixed)


def solve(
    data_dir: Path, submission: Path, facts: dict[str, Any], advice: dict[str, Any], blend: list[dict[str, float]],
    pipelines: dict[str, Choices], folds: dict[str, Any], **options: Any,
) -> None:  # fmt: skip
    """Create the submission from the data, with the final choices.

    Args:
        folds: How the pipelines were validated, for readers only; no validation happens here.
    """
    table = Table(data_dir, Facts(**facts), Advice(**advice), **options)
    chosen = [[Choice(name, weight) for name, weight in weights.items()] for weights in blend]
    table.write(submission, chosen, {name: table.predict(choices) for name, choices in pipelines.items()})


def _shared(train: Any, test: Any) -> Array:
    """Return which training rows also occur in the test table."""
    known = {tuple(row) for row in test.astype(str).itertuples(index=False)}
    return np.array([tuple(row) in known for row in train.astype(str).itertuples(index=False)], dtype=bool)
