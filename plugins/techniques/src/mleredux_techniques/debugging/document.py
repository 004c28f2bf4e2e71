"""`debugging_analysis.json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.vocabulary.document import Document, Part, Text

MOST_FAULTS = 10
FaultKind = Literal[
    "crash",
    "misaligned_rows",
    "misaligned_columns",
    "wrong_split",
    "metric_direction",
    "fold_off_by_one",
    "inconsistent_preprocessing",
]


class Fault(Part):
    """One fault of the script."""

    kind: FaultKind
    line: Annotated[int, Field(ge=1)]
    """Its line number in train.py, counted from 1."""
    explanation: Text = ""


class DebuggingAnalysis(Document):
    """The faults of a training script, and the repaired script."""

    faults: list[Fault] = Field(max_length=MOST_FAULTS)
    """Each fault once, with the number of the wrong line."""
    script: str = Field(max_length=20_000)
    """The whole repaired script."""

    def _agrees_with_itself(self) -> None:
        lines = [fault.line for fault in self.faults]
        if len(lines) != len(set(lines)):
            raise ValueError("`faults` contains the same line twice")


def recommend(document: DebuggingAnalysis, dataset: Dataset) -> list[str]:
    """Return the recommendation, one line per item."""
    return []
