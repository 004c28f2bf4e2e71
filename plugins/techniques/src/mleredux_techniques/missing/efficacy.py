"""Efficacy of imputations: the competition's metric of the reference models on held-out training rows.

Naive: the mean of numbers and the most frequent text, whatever the mechanism. Strong: the best of six plans within the
training table; missing texts are a separate category in all of them.
"""

from __future__ import annotations

from mleredux_techniques._kit.data.dataset import Dataset, Instance
from mleredux_techniques._kit.judging.comparison import undecided
from mleredux_techniques._kit.judging.panel import Panel
from mleredux_techniques._kit.judging.results import Efficacy
from mleredux_techniques._kit.vocabulary.imputers import (
    DropColumn,
    Imputation,
    IterativeImputer,
    KNNImputer,
    SimpleImputer,
)
from mleredux_techniques.missing.document import MissingAnalysis

NAIVE = "mean of numbers, most frequent text"
_MEAN = SimpleImputer(name="SimpleImputer", strategy="mean")
_MARKED = SimpleImputer(name="SimpleImputer", strategy="mean", add_indicator=True)
_FREQUENT = SimpleImputer(name="SimpleImputer", strategy="most_frequent")
_CATEGORY = SimpleImputer(name="SimpleImputer", strategy="constant")
IMPUTERS: dict[str, Imputation] = {
    "the mean": _MEAN,
    "the mean and an indicator": _MARKED,
    "KNNImputer": KNNImputer(name="KNNImputer"),
    "KNNImputer and an indicator": KNNImputer(name="KNNImputer", add_indicator=True),
    "IterativeImputer": IterativeImputer(name="IterativeImputer"),
    "IterativeImputer and an indicator": IterativeImputer(name="IterativeImputer", add_indicator=True),
}
"""Candidate imputations of numbers for the strong choice."""


def measure(document: MissingAnalysis, instance: Instance) -> Efficacy:
    """Execute the recommended imputations; an unlisted column is imputed as in the naive choice."""
    dataset = instance.dataset
    gaps = with_gaps(dataset)
    given = naive(dataset)
    listed = {column.column: column.imputation for column in document.columns if column.column in dataset.kinds}
    dropped = {name: how for name, how in listed.items() if isinstance(how, DropColumn)}
    given |= {name: how for name, how in listed.items() if name in gaps} | dropped
    if not gaps and not dropped:
        return undecided("There are no missing values to impute.")
    return PANEL.measure(given, instance)


def with_gaps(dataset: Dataset) -> list[str]:
    """Return features with missing values in the training or the test table."""
    features = list(dataset.features)
    found = dataset.train[features].isna().any() | dataset.test[features].isna().any()
    return [name for name in features if found[name]]


def naive(dataset: Dataset) -> dict[str, Imputation]:
    """Return the naive plan: the mean of numbers and the most frequent text."""
    return {name: _FREQUENT if dataset.kinds[name] == "text" else _MEAN for name in with_gaps(dataset)}


def panel_of(dataset: Dataset) -> dict[str, dict[str, Imputation]]:
    """Return the plans of which the strong one is the best, simplest first."""
    gaps = with_gaps(dataset)
    texts = all(dataset.kinds[name] == "text" for name in gaps)
    return {
        f"{name} of numbers, missing texts as a category": _with_category(dataset, how)
        for name, how in list(IMPUTERS.items())[: bool(gaps) if texts else None]
    } or {NAIVE: {}}


def marked(dataset: Dataset) -> dict[str, Imputation]:
    """Return a good plan for planted gaps: indicators."""
    return _with_category(dataset, _MARKED)


def _with_category(dataset: Dataset, how: Imputation) -> dict[str, Imputation]:
    return {name: _CATEGORY if dataset.kinds[name] == "text" else how for name in with_gaps(dataset)}


PANEL = Panel("imputation", NAIVE, naive, panel_of, marked)
contrast, gap = PANEL.contrast, PANEL.gap
