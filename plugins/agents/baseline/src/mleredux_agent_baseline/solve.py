"""Create the submission from data and fixed choices: the final step of the agent, and of `solution.py`."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mleredux_agent_baseline.columns import IMAGE_PREFIX, Profile, profile_of
from mleredux_agent_baseline.features import PIXEL_COMPONENTS, Features
from mleredux_agent_baseline.files import Facts, NotForBaseline
from mleredux_agent_baseline.fit import Choice, fit_predict, mix
from mleredux_agent_baseline.images import find_images, image_column, read_pixels
from mleredux_agent_baseline.metrics import Array, nearest_code
from mleredux_agent_baseline.models import BY_NAME
from mleredux_agent_baseline.problem import Head, Problem, infer
from mleredux_agent_baseline.tables import Tables, load_tables


def write_submission(sample: Path, path: Path, heads: list[Head], predictions: list[Array]) -> None:
    """Fill the sample's columns with predictions, and replace the submission atomically.

    Args:
        sample: The sample submission; its ids are copied as text.
        predictions: For each head, probabilities of shape (rows, classes), or numbers.
    """
    table = pd.read_csv(sample, dtype=str, keep_default_na=False)
    for head, prediction in zip(heads, predictions, strict=True):
        for column, values in answer_columns(head, prediction).items():
            table[column] = values
    temporary = path.with_name(f".{path.name}.part")
    with temporary.open("w", encoding="utf-8", newline="") as file:
        table.to_csv(file, index=False, lineterminator="\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def answer_columns(head: Head, prediction: Array) -> dict[str, Any]:
    """Return the columns of the submission that a head fills."""
    if not head.classes:
        values = prediction.reshape(len(prediction), -1)
        return {column: values[:, place] for place, column in enumerate(head.columns)}
    if head.form == "label":
        codes = nearest_code(prediction) if head.ordinal else prediction.argmax(axis=1)
        return {head.columns[0]: [head.classes[code] for code in codes]}
    if len(head.columns) == 1:
        return {head.columns[0]: prediction[:, -1]}
    shares = prediction / np.maximum(prediction.sum(axis=1, keepdims=True), 1e-300)
    return {column: shares[:, place] for place, column in enumerate(head.columns)}


SMALL_CELLS = 200_000
COLOUR_ROWS = 20_000
"""Maximum number of images that are read in color."""


class Prepared:
    """The task's tables, prepared: targets, rows and columns.

    Args:
        deadline: Unix time by which images must be read; otherwise they are left out.
    """

    def __init__(
        self,
        data_dir: Path,
        facts: Facts,
        *,
        seed: int,
        memory_mb: float,
        max_rows: int,
        deadline: float = float("inf"),
    ) -> None:
        self.tables: Tables = load_tables(data_dir, facts, memory_mb=memory_mb, max_rows=max_rows, seed=seed)
        self.problem: Problem = infer(self.tables, facts)
        columns = self.problem.features
        train, test = self.tables.train.iloc[self.problem.rows], self.tables.test
        self.images_left_out = ""
        images = find_images(data_dir)
        named = image_column(train, test, images) if images else None
        if named:
            try:
                colour = len(train) + len(test) <= COLOUR_ROWS
                pixels = [
                    read_pixels(table[named], images, colour=colour, deadline=deadline) for table in (train, test)
                ]
                train, test = (
                    pd.concat([table, block], axis=1) for table, block in zip((train, test), pixels, strict=True)
                )
                columns = [name for name in columns if name != named] + list(pixels[0].columns)
            except (ImportError, TimeoutError, OSError) as error:
                self.images_left_out = f"{type(error).__name__}: {error}"
        if not columns:
            raise NotForBaseline("the tables have no feature columns in common, and there are no images named by ids")
        self.train: pd.DataFrame = train[columns].reset_index(drop=True)
        self.test: pd.DataFrame = test[columns].reset_index(drop=True)
        self.profile: Profile = profile_of(self.train, columns)
        self.features = Features(self.train, self.test, self.profile, seed)

    @property
    def heads(self) -> list[Head]:
        """The targets."""
        return self.problem.heads

    def describe(self) -> str:
        """Return a description of the problem for the log."""
        tables = sum(not name.startswith(IMAGE_PREFIX) for name in self.train.columns)
        lines = [
            f"{len(self.train)} training rows (share read: {self.tables.kept:g}), {len(self.test)} test rows, "
            f"{tables} feature columns, {len(self.profile.images)} pixels",
            f"ids: {', '.join(self.problem.ids) or 'none'}; texts: {', '.join(self.profile.texts) or 'none'}; "
            f"codes: {', '.join(self.profile.codes) or 'none'}; others: {', '.join(self.profile.others) or 'none'}",
        ]
        for head in self.heads[:10]:
            kind = f"{len(head.classes)} classes" if head.classes else "numbers"
            lines.append(f"target {head.name}: {kind}, submitted as {head.form}")
        if len(self.heads) > 10:
            lines.append(f"… and {len(self.heads) - 10} more targets")
        if self.images_left_out:
            lines.append(f"images are left out: {self.images_left_out}")
        return "\n".join(lines)


def useful_threads(prepared: Prepared, threads: int) -> int:
    """Return the number of useful threads, one for small tables, and limit the threads of native libraries to it."""
    from threadpoolctl import threadpool_limits

    rows, columns = prepared.train.shape
    pixels = len(prepared.profile.images)  # models use only their main components
    useful = 1 if rows * (columns - pixels + min(pixels, PIXEL_COMPONENTS)) < SMALL_CELLS else threads
    threadpool_limits(useful)
    return useful


def predict(
    prepared: Prepared, choices: list[list[Choice]], metric: str, seed: int, threads: int,
    say: Callable[[str], None] = lambda _message: None,
) -> list[Array]:  # fmt: skip
    """Fit the chosen candidates of each head to all training rows, and predict the test rows."""
    predictions = []
    for head, chosen in zip(prepared.heads, choices, strict=True):
        parts = {}
        for choice in chosen:
            candidate = BY_NAME[bool(head.classes)][choice.candidate]
            known, unknown = prepared.features.get(candidate.features)
            started = time.time()
            rows = np.arange(len(prepared.train))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                parts[choice.candidate] = fit_predict(candidate, head, known, rows, [unknown], metric, seed, threads)[0]
            seconds = time.time() - started
            say(f"fitted {choice.candidate} (weight {choice.weight:.2f}) for {head.name} in {seconds:.1f} s")
        predictions.append(mix(parts, chosen))
    return predictions


def solve(
    data_dir: Path, submission: Path, facts: Facts, choices: list[list[Choice]], *, seed: int, threads: int,
    memory_mb: float, max_rows: int,
) -> None:  # fmt: skip
    """Create the submission from the data."""
    prepared = Prepared(data_dir, facts, seed=seed, memory_mb=memory_mb, max_rows=max_rows)
    useful = useful_threads(prepared, threads)
    predictions = predict(prepared, choices, facts.metric, seed, useful)
    write_submission(prepared.tables.sample_path, submission, prepared.heads, predictions)
