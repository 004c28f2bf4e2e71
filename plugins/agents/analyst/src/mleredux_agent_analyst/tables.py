"""The tables of a technique task, as listed in `question.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Array = np.ndarray[Any, Any]
WHOLE_NUMBERS_AS_CLASSES = 20
MISSING = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"}
    | {"NULL", "NaN", "None", "n/a", "nan", "null"}
)
"""Strings that pandas.read_csv treats as missing; the question counts them as missing in all formats."""


class NoQuestion(Exception):
    """This is not a technique task, or its tables cannot be read; the message states the reason."""


@dataclass(frozen=True)
class Tables:
    """The question's tables.

    Attributes:
        train: Rows with a target; booleans are 1.0, 0.0 or NaN.
        test: Rows without a target; None if there is no test table.
        kinds: Kind of each id and feature: `number`, `boolean` or `text`.
        folder: The folder of the public files.
        metric: The competition's metric.
        direction: `maximize` or `minimize`.
        thorough: Whether to compare the relations of columns in both tables, too, instead of using only rules of thumb.
    """

    technique: str
    train: pd.DataFrame
    test: pd.DataFrame | None
    target: str
    ids: list[str]
    features: list[str]
    kinds: dict[str, str]
    folder: Path = Path()
    metric: str = ""
    direction: str = "maximize"
    thorough: bool = False

    @property
    def classes(self) -> bool:
        """Whether the target is a class: not numeric, or integers with few distinct values."""
        values = self.train[self.target].dropna()
        if kind_of(values) != "number":
            return True
        return not (values % 1 != 0).any() and values.nunique() <= WHOLE_NUMBERS_AS_CLASSES

    @property
    def labels(self) -> pd.Series[Any]:
        """Return the classes as strings, spelled as in the table."""
        values = self.train[self.target]
        if values.dtype.kind == "f" and not (values % 1 != 0).any():
            values = values.astype(int)
        return values.astype(str)

    def of_kind(self, *kinds: str) -> list[str]:
        """Return the features of the given kinds."""
        return [name for name in self.features if self.kinds[name] in kinds]


def read(data: Path, *, thorough: bool = False) -> Tables:
    """Read the question's tables.

    Raises:
        NoQuestion: The task has no question.
    """
    path = data / "question.json"
    if not path.is_file():
        raise NoQuestion("there is no question.json in the data directory, so this is not a technique task")
    question = json.loads(path.read_bytes())
    most = int(question.get("rows_at_most") or 10**9)
    train = _table(data / question["train"], most)
    test = _table(data / question["test"], most) if question.get("test") else None
    target = question["target"]
    train = train[train[target].notna()].reset_index(drop=True)
    names = [*question["ids"], *question["features"]]
    kinds = {name: kind_of(train[name]) for name in names if name in train}
    for name in (name for name, kind in kinds.items() if kind == "boolean"):
        for frame in (train, test):
            if frame is not None and name in frame:
                frame[name] = frame[name].map(lambda value: {"true": 1.0, "false": 0.0}.get(str(value).lower(), np.nan))
    return Tables(
        technique=question["technique"],
        train=train,
        test=test,
        target=target,
        ids=[name for name in question["ids"] if name in train],
        features=[name for name in question["features"] if name in train],
        kinds=kinds,
        folder=data,
        metric=question.get("metric", ""),
        direction=question.get("direction", "maximize"),
        thorough=thorough,
    )


def kind_of(values: pd.Series[Any]) -> str:
    """Return `number`, `boolean` or `text`."""
    if pd.api.types.is_bool_dtype(values):
        return "boolean"
    if pd.api.types.is_numeric_dtype(values):
        return "number"
    words = {str(value).lower() for value in values.dropna().unique()[:5]}
    return "boolean" if words and words <= {"true", "false"} else "text"


def is_date(values: pd.Series[Any]) -> bool:
    """Return whether a column of strings contains dates."""
    known = values.dropna().head(500).astype(str)
    pattern = r"^\d{4}[-/.]?\d{2}[-/.]?\d{2}|^\d{1,2}[/.]\d{1,2}[/.]\d{2,4}"
    return bool(len(known)) and bool(known.str.contains(pattern, regex=True).mean() > 0.95)


def seconds(values: pd.Series[Any]) -> pd.Series[Any]:
    """Return dates as seconds since 1970, numbers unchanged."""
    if values.dtype.kind in "ifub":
        return values.astype(float)
    moments = pd.to_datetime(values, errors="coerce", utc=True, format="mixed")
    return (moments - pd.Timestamp(0, tz="UTC")).dt.total_seconds()


def duplicates(tables: Tables) -> tuple[int, int]:
    """Count training rows that repeat an earlier row's features, and test rows that occur in the training table."""
    train = pd.util.hash_pandas_object(tables.train[tables.features], index=False)
    repeated = int(train.duplicated().sum())
    if tables.test is None or not set(tables.features) <= set(tables.test):
        return repeated, 0
    test = tables.test[tables.features].astype(tables.train[tables.features].dtypes.to_dict(), errors="ignore")
    return repeated, int(pd.util.hash_pandas_object(test, index=False).isin(set(train)).sum())


def _flat(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        return json.dumps(value)
    return None if isinstance(value, str) and value in MISSING else value


def _table(path: Path, most: int) -> pd.DataFrame:
    name = path.name.lower()
    try:
        if name.endswith((".json", ".jsonl")):
            text = path.read_text(encoding="utf-8")
            lines = [] if name.endswith(".json") else [line for line in text.split("\n") if line.strip()][:most]
            records = [json.loads(line) for line in lines] if lines else json.loads(text)[:most]
            return pd.DataFrame.from_records([{k: _flat(v) for k, v in record.items()} for record in records])
        if name.endswith(".parquet"):
            frame = pd.read_parquet(path).head(most)
            texts = [name for name, dtype in frame.dtypes.items() if dtype.kind == "O"]
            return frame.assign(**frame[texts].map(_flat))
        return pd.read_csv(path, sep="\t" if ".tsv" in name else ",", nrows=most, low_memory=False)
    except (OSError, ValueError, ImportError) as error:
        raise NoQuestion(f"can't read {path.name}: {error}") from error
