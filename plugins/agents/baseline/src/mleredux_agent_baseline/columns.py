"""Determine the types of columns, and clean up tables row by row without learning anything."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from mleredux_agent_baseline.problem import is_text

IMAGE_PREFIX = "image:"
"""Prefix of the names of columns created from images."""
CODE = re.compile(r"[/_|-]")


@dataclass(frozen=True)
class Profile:
    """The kinds of the feature columns.

    Attributes:
        numeric: Numbers and booleans.
        texts: Sentences.
        codes: Codes of several parts (`B/0/P`), with the number of parts.
        others: Categories, dates and short strings.
        images: Columns of pixels.
    """

    numeric: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    codes: dict[str, int] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)


def profile_of(train: pd.DataFrame, columns: list[str]) -> Profile:
    """Return the kinds of columns, according to the training table."""
    profile = Profile()
    for name in columns:
        values = train[name]
        parts = code_parts(values)
        if name.startswith(IMAGE_PREFIX):
            profile.images.append(name)
        elif pd.api.types.is_numeric_dtype(values) or truth_values(values):
            profile.numeric.append(name)
        elif parts:
            profile.codes[name] = parts
        elif is_text(values):
            profile.texts.append(name)
        else:
            profile.others.append(name)
    return profile


def truth_values(values: pd.Series[Any]) -> bool:
    """Return whether a column contains only True, False and missing values."""
    return set(values.dropna().unique()) <= {True, False, "True", "False"}


def code_parts(values: pd.Series[Any]) -> int:
    """Return the number of parts of the codes in a column (2 to 4); 0 if it has no codes, or too few distinct codes."""
    if pd.api.types.is_numeric_dtype(values) or pd.api.types.is_datetime64_any_dtype(values):
        return 0
    some = values.dropna().astype(str).head(2000)
    if some.nunique() < 40 or some.str.contains(r"\s|:|\d{4}-\d\d", regex=True).mean() > 0.05:
        return 0
    counts = some.map(lambda text: len(CODE.split(text)))
    common = int(counts.mode().iloc[0])
    return common if 2 <= common <= 4 and float((counts == common).mean()) > 0.95 else 0


def clean(frame: pd.DataFrame, profile: Profile) -> pd.DataFrame:
    """Return columns that are not texts or images: numbers as floats, codes split, dates unchanged, others as text."""
    columns: dict[str, object] = {}
    for name in profile.numeric:
        values = frame[name]
        if not pd.api.types.is_numeric_dtype(values):
            values = values.map({True: 1.0, False: 0.0, "True": 1.0, "False": 0.0})
        columns[name] = pd.to_numeric(values, errors="coerce").astype(float).replace([np.inf, -np.inf], np.nan)
    for name, parts in profile.codes.items():
        split = frame[name].astype("string").str.split(CODE.pattern, n=parts - 1, expand=True, regex=True)
        for place in range(parts):
            part = split[place] if place in split.columns else pd.Series(pd.NA, index=frame.index, dtype="string")
            number = pd.to_numeric(part, errors="coerce").astype(float)
            columns[f"{name}.{place}"] = number if _mostly_number(name, place, number, part) else part.astype(object)
    for name in profile.others:
        values = frame[name]
        columns[name] = values if pd.api.types.is_datetime64_any_dtype(values) else _as_text(values)
    return pd.DataFrame(columns, index=frame.index)


def _mostly_number(name: str, place: int, number: pd.Series[Any], part: pd.Series[Any]) -> bool:
    known = part.notna()
    return bool(known.any() and number[known].notna().mean() > 0.9)


def _as_text(values: pd.Series[Any]) -> pd.Series[Any]:
    return values.where(values.isna(), values.astype(str)).astype(object).where(values.notna(), None)


def texts(frame: pd.DataFrame, profile: Profile) -> list[str]:
    """Return one text per row: all text columns concatenated."""
    if not profile.texts:
        return [""] * len(frame)
    joined = frame[profile.texts].fillna("").astype(str)
    return joined.agg(" \n ".join, axis=1).tolist()
