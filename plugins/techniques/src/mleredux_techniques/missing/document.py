"""`missing_analysis.json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mleredux_techniques._kit.vocabulary.document import MAX_ITEMS, Count, Document, Name, Part, once
from mleredux_techniques._kit.vocabulary.imputers import Imputation

Mechanism = Literal["MCAR", "MAR", "MNAR"]


class MissingColumn(Part):
    """One column with missing values."""

    column: Name
    missing: Annotated[int, Field(ge=1)]
    """Number of training rows in which it is missing."""
    mechanism: Mechanism
    """MCAR: completely at random; MAR: depends on other columns or the target; MNAR: depends on the value itself."""
    depends_on: list[Name] = Field(default=[], max_length=20)
    """For MAR: the columns on which it depends, strongest first; the target may be one of them."""
    imputation: Imputation


class MissingTogether(Part):
    """Columns with missing values in the same rows."""

    columns: list[Name] = Field(min_length=2, max_length=MAX_ITEMS)
    rows: Count
    """Number of training rows in which all of them are missing."""


class MissingAnalysis(Document):
    """Missing values, their patterns and mechanisms, and recommended imputations."""

    complete_rows: Count
    """Number of training rows in which no feature is missing."""
    columns: list[MissingColumn] = Field(max_length=MAX_ITEMS)
    """Every feature with missing values, each once."""
    together: list[MissingTogether] = Field(default=[], max_length=MAX_ITEMS)
    """Groups of columns that are mostly missing in the same rows."""

    def _agrees_with_itself(self) -> None:
        counts = {item.column: item.missing for item in self.columns}
        for item in self.columns:
            if item.mechanism != "MAR" and item.depends_on:
                raise ValueError(f"{item.column[:60]!r} is {item.mechanism}, but `depends_on` contains columns")
            if item.column in item.depends_on:
                raise ValueError(f"{item.column[:60]!r} depends on itself, so its mechanism is MNAR")
        groups = []
        for group in self.together:
            once(group.columns, "columns of a group in `together`")
            groups.append(frozenset(group.columns))
            for name in group.columns:
                if name not in counts:
                    raise ValueError(f"`together` contains {name[:60]!r}, which is not in `columns`")
                if group.rows > counts[name]:
                    raise ValueError(f"`together` has more rows than {name[:60]!r} has missing values")
        if len(set(groups)) < len(groups):
            raise ValueError("`together` contains the same columns twice")
