"""Imputations, carried out: names and parameters as in scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mleredux_techniques.schemas.missing import DropColumn, Imputation, IterativeImputer, KNNImputer, SimpleImputer

if TYPE_CHECKING:
    import pandas as pd

Array = np.ndarray[Any, Any]
Block = tuple[Array, Array]

DONORS = 1_000
"""Training rows that KNNImputer takes values from, and that IterativeImputer learns from."""
NEAREST_FEATURES = 10
"""Other columns that IterativeImputer predicts a column from, drawn anew each time in proportion to correlation."""
MAX_ITERATIONS = 5
MISSING = "missing"


@dataclass(frozen=True)
class Filled:
    """Numbers without gaps, and columns that tell where the gaps were (each already centred)."""

    train: Array
    held_out: Array
    indicators: list[Block]


def fill_numbers(train: Array, held_out: Array, imputations: Sequence[Imputation], *, seed: int) -> Filled:
    """Fill the gaps of each numeric column as its imputation says.

    KNNImputer and IterativeImputer see all columns, standardised.

    Args:
        train: Shape (rows, columns), NaN where missing.
        held_out: Likewise.
    """
    filled_train, filled_other = np.empty_like(train), np.empty_like(held_out)
    for place, imputation in enumerate(imputations):
        value = _fill_value(train[:, place], imputation)
        filled_train[:, place] = np.where(np.isnan(train[:, place]), value, train[:, place])
        filled_other[:, place] = np.where(np.isnan(held_out[:, place]), value, held_out[:, place])
    for kind in (KNNImputer, IterativeImputer):
        asked: dict[Imputation, list[int]] = {}
        for place, imputation in enumerate(imputations):
            gaps = np.isnan(train[:, place]).any() or np.isnan(held_out[:, place]).any()
            if isinstance(imputation, kind) and gaps and not np.isnan(train[:, place]).all():
                key = imputation.model_copy(update={"add_indicator": False})
                asked.setdefault(key, []).append(place)
        for imputation, places in asked.items():
            first, second = _jointly(imputation, train, held_out, seed)
            for place in places:
                filled_train[:, place], filled_other[:, place] = first[:, place], second[:, place]
    indicators = [
        _indicator(np.isnan(train[:, place]), np.isnan(held_out[:, place]))
        for place, imputation in enumerate(imputations)
        if getattr(imputation, "add_indicator", False) and np.isnan(train[:, place]).any()
    ]
    return Filled(filled_train, filled_other, indicators)


def fill_texts(
    train: pd.Series[Any], held_out: pd.Series[Any], imputation: Imputation
) -> tuple[Array, Array, list[Block]]:
    """Fill the gaps of a column of texts; what is for numbers only is carried out as `most_frequent`."""
    constant = isinstance(imputation, SimpleImputer) and imputation.strategy == "constant"
    if constant:
        given = getattr(imputation, "fill_value", None)
        value = MISSING if given is None else str(given)
    else:
        counts = train.dropna().astype(str).value_counts()
        value = min(counts.index[counts == counts.max()]) if len(counts) else MISSING
    gaps = train.isna().to_numpy(), held_out.isna().to_numpy()
    indicators = [_indicator(*gaps)] if getattr(imputation, "add_indicator", False) and gaps[0].any() else []
    texts = (
        np.array(column.astype(object).where(column.notna(), value).astype(str), object) for column in (train, held_out)
    )
    return next(texts), next(texts), indicators


def _fill_value(column: Array, imputation: Imputation) -> float:
    known = column[~np.isnan(column)]
    if isinstance(imputation, DropColumn) or not len(known):
        return 0.0
    if isinstance(imputation, SimpleImputer):
        if imputation.strategy == "constant":
            return _number(imputation.fill_value)
        if imputation.strategy == "median":
            return float(np.median(known))
        if imputation.strategy == "most_frequent":
            values, counts = np.unique(known, return_counts=True)
            return float(values[counts.argmax()])
    return float(known.mean())


def _number(value: str | float | None) -> float:
    try:
        return float(value or 0)
    except ValueError:
        return 0.0


def _indicator(train: Array, held_out: Array) -> Block:
    share = train.mean()
    return (train - share)[:, None], (held_out - share)[:, None]


def _jointly(imputation: Imputation, train: Array, held_out: Array, seed: int) -> Block:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer as SklearnIterative
    from sklearn.impute import KNNImputer as SklearnKnn

    known = ~np.isnan(train).all(axis=0)
    middle, spread = np.zeros(train.shape[1]), np.ones(train.shape[1])
    middle[known] = np.nanmean(train[:, known], axis=0)
    spread[known] = np.nanstd(train[:, known], axis=0) + 1e-12
    scaled = [(part - middle) / spread for part in (train, held_out)]
    donors = np.sort(np.random.default_rng(seed).permutation(len(train))[:DONORS])
    imputer: Any
    if isinstance(imputation, KNNImputer):
        imputer = SklearnKnn(n_neighbors=imputation.n_neighbors, keep_empty_features=True)
    else:
        iterations = imputation.max_iter if isinstance(imputation, IterativeImputer) else MAX_ITERATIONS
        wide = train.shape[1] > NEAREST_FEATURES + 1
        imputer = SklearnIterative(
            max_iter=min(iterations, MAX_ITERATIONS), n_nearest_features=NEAREST_FEATURES if wide else None,
            random_state=seed, keep_empty_features=True, skip_complete=True,
        )  # fmt: skip
    imputer.fit(scaled[0][donors])
    first, second = (np.asarray(imputer.transform(part)) * spread + middle for part in scaled)
    return first, second
