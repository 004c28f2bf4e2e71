"""Write predictions in the format of the sample submission."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mleredux_agent_baseline.metrics import Array, nearest_code
from mleredux_agent_baseline.problem import Head


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
