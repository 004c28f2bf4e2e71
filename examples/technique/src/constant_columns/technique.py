"""The technique `constant-columns`: find features that are the same in nearly all rows, and choose which to drop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from mleredux.errors import NotApplicable
from mleredux_techniques.kit import (
    MAX_ITEMS,
    Dataset,
    Document,
    DropFeature,
    Facts,
    Instance,
    Name,
    OfColumns,
    Part,
    Share,
    Sheet,
    TechniqueSpec,
    Treatments,
    close,
    fresh_names,
    listing,
    with_columns,
)
from pydantic import Field

CONSTANT = 0.99
TOLERANCES = f"""\
- `columns` (weight 0.5): F1 of the features with one value, or missing values, in at least {CONSTANT:.0%} of the rows
- `share` of each of these (0.5): within 0.1 % (half within 0.5 %); any other column counts against it"""


class ConstantColumn(Part):
    """One feature."""

    column: Name
    share: Share = Field(description="Share of rows with its most frequent value; missing counts as a value.")
    drop: bool = Field(description="Whether to leave it out.")


class ConstantColumnsAnalysis(Document):
    """Features that are the same in nearly all rows."""

    columns: list[ConstantColumn] = Field(max_length=MAX_ITEMS, description="Each once.")

    def _agrees_with_itself(self) -> None:
        for item in self.columns:
            if item.share < CONSTANT:
                raise ValueError(f"{item.column[:60]!r} has a share of {item.share}, which is not nearly all rows")


def truth(dataset: Dataset) -> dict[str, Any]:
    """Return the features that are the same in nearly all rows, with the share of these rows.

    Raises:
        NotApplicable: There are no such features.
    """
    shares = {}
    for name in dataset.features:
        share = float(dataset.train[name].value_counts(normalize=True, dropna=False).iloc[0])
        if share >= CONSTANT:
            shares[name] = share
    if not shares:
        raise NotApplicable(
            f"constant-columns does not apply to {dataset.task}: no feature is the same in nearly all rows.",
            hint=f"Ask constant-columns+planted-1@{dataset.task}.",
        )
    return {"shares": shares}


def assess(document: ConstantColumnsAnalysis, truth: dict[str, Any]) -> Facts:
    """Compare the document with the columns."""
    shares: dict[str, float] = truth["shares"]
    claimed = {item.column: item.share for item in document.columns}
    right = sum(close(claimed[name], share, 0.001) for name, share in shares.items() if name in claimed)
    listed = listing(f"{name} {share:.4f}" for name, share in shares.items())
    sheet = Sheet(__file__)
    sheet.claims("columns", claimed, shares)
    sheet.mark("shares", right / len(set(shares) | set(claimed)), claimed, shares, listed=listed)
    return sheet.facts()


class Omissions(OfColumns):
    """Compare dropping the recommended columns with dropping none and dropping all constant columns."""

    kind = "encoding"

    def naive(self, instance: Instance) -> Treatments:
        return {}

    def panel(self, instance: Instance) -> Sequence[Treatments]:
        return [without(instance.truth["shares"])]

    def given(self, document: ConstantColumnsAnalysis, instance: Instance) -> Treatments:
        return without(item.column for item in document.columns if item.drop)


def without(names: Iterable[str]) -> Treatments:
    """Return the treatments that drop columns."""
    return {name: DropFeature(name="drop") for name in names}


def recommend(document: ConstantColumnsAnalysis, dataset: Dataset) -> list[str]:
    """Return which columns to drop, limited to columns in the data."""
    names = [f"`{item.column}`" for item in document.columns if item.drop and item.column in dataset.features]
    return [f"leave out: {', '.join(names) or 'nothing'}"]


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Add two to four columns that are the same in nearly all rows, and two that are the same only in most rows."""
    names = fresh_names(dataset, rng, int(rng.integers(4, 7)))
    sizes = len(dataset.train), len(dataset.test)
    columns: dict[str, Any] = {}
    for place, name in enumerate(names):
        rare = float(rng.uniform(0.1, 0.3)) if place < 2 else float(rng.uniform(0.0, 0.005))
        values = [np.where(rng.random(size) < rare, rng.integers(1, 9, size), 0).astype(float) for size in sizes]
        columns[name] = (values[0], values[1], "number")
    planted = with_columns(dataset, columns, rng)
    return replace(planted, planted={"kinds": ["constant"], "columns": names[2:]})


technique = TechniqueSpec(
    id="constant-columns",
    title="Constant columns: which ones carry no information, and what to do",
    folder=Path(__file__).parent,
    document=ConstantColumnsAnalysis,
    tolerances=TOLERANCES,
    truth=truth,
    assess=assess,
    measure=Omissions().measure,
    recommend=recommend,
    plant=plant,
)
