"""Column kinds, classes, and whether a target is a class or a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Kind, Series

REGRESSION_METRICS = frozenset(
    {"mae", "mape", "mcrmse", "mean-angular-error", "median-absolute-error", "mse", "r2", "rmse", "rmsle"}
    | {"spearman", "pearson", "group-log-mae", "haversine-percentiles", "laplace-log-likelihood"}
)
CLASSIFICATION_METRICS = frozenset(
    {"accuracy", "balanced-accuracy", "average-precision", "bias-roc-auc", "brier", "cohen-kappa", "error-rate", "f1"}
    | {"f1-multilabel", "log-loss", "matthews-correlation", "precision", "recall", "roc-auc", "weighted-log-loss"}
    | {"weighted-roc-auc", "probabilistic-f1", "lwlrap", "quadratic-weighted-kappa", "kl-divergence"}
)
AREAS = ("roc-auc", "weighted-roc-auc")
ORDER_METRICS = (*AREAS, "average-precision", "spearman")
"""Rank-based metrics; the areas under curves do not depend on class ratios."""
MAX_CLASSES_OF_NUMBERS = 20
"""Integer targets with more distinct values are numeric, unless the metric implies otherwise."""
_BOOLEANS = frozenset({"true", "false"})
FEW_CODES = 20
"""Texts with at most this many distinct values may be categories, even if they look like numbers."""
_AMOUNT = (
    r"^(?P<head>[^\w.+-]{0,3}|[A-Za-z]{2,3} )(?P<number>[+-]?\d[\d,. ]*(?:[eE][+-]?\d+)?)"
    r"\s*(?P<unit>[^\W\d_]{0,3}[%°²³]?)$"
)
_UNITS = 3
_WORDS, _NUMBERS = 2, 0.6
"""Words that denote missing amounts, and the minimum share of the other texts that must be amounts."""


def kind_of(values: Series) -> Kind:
    """Return the kind of a column, based on its values."""
    import pandas as pd

    if pd.api.types.is_bool_dtype(values):
        return "boolean"
    if pd.api.types.is_numeric_dtype(values):
        return "number"
    known = values.dropna()
    texts = {str(value).lower() for value in known.unique()[:5]}
    return "boolean" if texts and texts <= _BOOLEANS else "text"


def normalised(values: Series, kind: Kind) -> Series:
    """Convert a column to the form of `Dataset`: booleans as 0.0/1.0/NaN, texts as `str` or NaN, numbers unchanged."""
    import pandas as pd

    if kind == "number":
        numbers = pd.to_numeric(values, errors="coerce")
        return numbers.astype(float) if str(numbers.dtype)[0] in "IUFB" else numbers.replace([np.inf, -np.inf], np.nan)
    if kind == "boolean":
        known = values.dropna().astype(str).str.lower()
        return known.map({"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}).reindex(values.index)
    texts = values.astype(object)
    texts = texts.where(texts.isna(), texts.map(str)).astype(object)
    return texts.where(texts.notna() & (texts != ""), np.nan)


def as_classes(values: Series) -> Series:
    """Return classes as texts: `True`, `0`, `cultivar_1`; integers without a decimal point."""
    return values.map(class_name).astype(object)


def class_name(value: Any) -> str:
    """Return the canonical spelling of a class: `0`, `0.0` and 0 are the same."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    text = str(value).strip()
    return text[:-2] if text.endswith(".0") and text[:-2].lstrip("-").isdigit() else text


def is_numeric_target(values: Series, metric: str) -> bool:
    """Return whether a target is numeric rather than a class."""
    if kind_of(values) != "number":
        return False
    if metric in REGRESSION_METRICS:
        return True
    many = metric not in CLASSIFICATION_METRICS and values.nunique() > MAX_CLASSES_OF_NUMBERS
    return bool(many or (values.dropna() % 1 != 0).any())


def is_free_text(values: Series) -> bool:
    """Return whether a text column contains prose: many distinct values of several words each."""
    known = values.dropna()
    if kind_of(values) != "text" or not len(known):
        return False
    texts = known.head(2_000).astype(str)
    return bool(known.nunique() > 0.5 * len(known) and texts.str.count(r"\s").mean() >= 4)


def same_spelling(values: Series, known: set[str]) -> Series:
    """Return classes spelled like the known ones, e.g. if one file has `True` and the other `1`."""
    if set(values) <= known:
        return values
    for spelling in ({"1": "True", "0": "False"}, {"True": "1", "False": "0"}, {"1": "true", "0": "false"}):
        if set(values) <= set(spelling) and set(spelling.values()) >= known:
            return values.map(spelling).astype(object)
    return values


def amounts(values: Series, fewest: int = FEW_CODES + 1) -> Series | None:
    """Return the numbers in texts with a sign, separators or a unit; None if the texts are few, not numbers, or
    codes with leading zeros, or have several points. Missing values stay missing, and a few words (`unknown`) become
    missing.

    Args:
        fewest: Minimum number of distinct numbers.
    """
    import pandas as pd

    parts = values.astype("string").str.strip().str.extract(_AMOUNT)
    known = parts["number"].dropna().str.replace(" ", "")
    others = values[parts["number"].isna() & values.notna()].astype(str)
    words = others.nunique() <= _WORDS and not others.str.contains(r"\d").any()
    if len(known) <= (_NUMBERS if words else 0.95) * values.notna().sum() or known.nunique() < fewest:
        return None
    if len(parts.dropna()[["head", "unit"]].drop_duplicates()) > _UNITS or known.str.fullmatch(r"0\d+").any():
        return None
    decimal = bool(known.str.fullmatch(r"[+-]?\d+,\d{1,2}").mean() > 0.95)
    plain = known.str.replace(",", "." if decimal else "", regex=False)
    numbers = pd.to_numeric(plain, errors="coerce").astype(float)
    return numbers.reindex(values.index) if numbers.notna().mean() > 0.95 else None  # versions have two points
