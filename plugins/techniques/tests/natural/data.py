"""What an agent sees of a technique task: the public tables and the roles of their columns."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from natural.evidence import Frame, Series, is_number

MISSING = ("", "NA", "N/A", "NaN", "nan", "None", "null", "NULL", "n/a")


@dataclass(frozen=True)
class Data:
    """The public folder of a technique task."""

    folder: Path

    @cached_property
    def question(self) -> dict[str, Any]:
        roles: dict[str, Any] = json.loads((self.folder / "question.json").read_bytes())
        return roles

    @cached_property
    def train(self) -> Frame:
        rows = self._read(self.question["train"])
        return rows[rows[self.target].notna()].reset_index(drop=True)

    @cached_property
    def test(self) -> Frame:
        return self._read(self.question["test"])

    @cached_property
    def predictions(self) -> Frame:
        return pd.read_csv(self.folder / "predictions.csv")

    def _read(self, name: str) -> Frame:
        path = self.folder / name
        if path.suffix != ".json":
            return pd.read_csv(path)
        rows = pd.DataFrame(json.loads(path.read_text()))
        texts = rows.select_dtypes(include=["object", "string"]).columns
        for column in texts:
            if rows[column].map(lambda value: isinstance(value, list)).any():
                rows[column] = rows[column].astype(str)
            rows[column] = rows[column].where(~rows[column].isin(MISSING), None)
        return rows

    @property
    def target(self) -> str:
        return str(self.question["target"])

    @property
    def features(self) -> list[str]:
        return list(self.question["features"])

    @property
    def metric(self) -> str:
        return str(self.question["metric"])

    @property
    def minimize(self) -> bool:
        return bool(self.question["direction"] == "minimize")

    @property
    def y(self) -> Series:
        return self.train[self.target]

    @property
    def regression(self) -> bool:
        return is_number(self.y) and self.y.nunique() > 20

    @property
    def numbers(self) -> list[str]:
        """Numeric features with more than two values."""
        return [name for name in self.features if is_number(self.train[name]) and self.train[name].nunique() > 2]

    @property
    def lacking(self) -> list[str]:
        return [name for name in self.features if self.train[name].isna().any()]

    def equal_rows(self) -> tuple[int, int]:
        """Training rows equal to an earlier one, and test rows equal to a training row, by their features."""
        rows = [
            pd.util.hash_pandas_object(table[self.features].astype(str), index=False)
            for table in (self.train, self.test)
        ]
        return int(rows[0].duplicated().sum()), int(rows[1].isin(rows[0]).sum())


def plain(value: Any) -> Any:
    """A class as it stands in the table, as text."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)
