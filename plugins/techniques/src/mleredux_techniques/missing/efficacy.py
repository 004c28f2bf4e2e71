"""Efficacy of imputations: the competition's metric of the reference models on held-out training rows.

Naive: the mean of numbers and the most frequent text, whatever the mechanism. Strong: the best of six plans within the
training table; missing texts are a separate category in all of them.
"""

from __future__ import annotations

from mleredux_techniques._kit.data.dataset import Dataset, Instance
from mleredux_techniques._kit.judging import plans
from mleredux_techniques._kit.judging.comparison import Difference, undecided
from mleredux_techniques._kit.judging.plans import Plan, choose, compare
from mleredux_techniques._kit.judging.results import Efficacy
from mleredux_techniques._kit.vocabulary.imputers import (
    DropColumn,
    Imputation,
    IterativeImputer,
    KNNImputer,
    SimpleImputer,
)
from mleredux_techniques._kit.vocabulary.preprocessing import Preprocessing
from mleredux_techniques.missing.document import MissingAnalysis

NAIVE = "mean of numbers, most frequent text"
_MEAN = SimpleImputer(name="SimpleImputer", strategy="mean")
_MARKED = SimpleImputer(name="SimpleImputer", strategy="mean", add_indicator=True)
_FREQUENT = SimpleImputer(name="SimpleImputer", strategy="most_frequent")
_CATEGORY = SimpleImputer(name="SimpleImputer", strategy="constant")
PANEL: dict[str, Imputation] = {
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
    before, best = contrast(instance)
    return compare(instance, naive=before, strong=best, given=(_told(given), _plan(given)))


def with_gaps(dataset: Dataset) -> list[str]:
    """Return features with missing values in the training or the test table."""
    features = list(dataset.features)
    found = dataset.train[features].isna().any() | dataset.test[features].isna().any()
    return [name for name in features if found[name]]


def naive(dataset: Dataset) -> dict[str, Imputation]:
    """Return the naive plan: the mean of numbers and the most frequent text."""
    return {name: _FREQUENT if dataset.kinds[name] == "text" else _MEAN for name in with_gaps(dataset)}


def contrast(instance: Instance) -> tuple[tuple[str, Plan], tuple[str, Plan]]:
    """Return the naive plan and the panel's best one, with their names."""
    dataset = instance.dataset
    gaps = with_gaps(dataset)
    panel: dict[str, dict[str, Imputation]] = {
        f"{name} of numbers, missing texts as a category": {
            column: _CATEGORY if dataset.kinds[column] == "text" else how for column in gaps
        }
        for name, how in PANEL.items()
    }
    if all(dataset.kinds[column] == "text" for column in gaps):
        panel = dict(list(panel.items())[: bool(gaps)]) or {NAIVE: {}}
    best = choose(instance, {name: _plan(plan) for name, plan in panel.items()})
    return (NAIVE, _plan(naive(dataset))), (best, _plan(panel[best]))


def gap(instance: Instance) -> Difference:
    """Return what good advice gains over the naive one: indicators over the mean."""
    gaps = with_gaps(instance.dataset)
    marked: dict[str, Imputation] = {
        name: _CATEGORY if instance.dataset.kinds[name] == "text" else _MARKED for name in gaps
    }
    return plans.gap(instance, _plan(naive(instance.dataset)), _plan(marked))


def _plan(plan: dict[str, Imputation]) -> dict[str, Preprocessing]:
    return {name: Preprocessing(imputation=how) for name, how in plan.items()}


def _told(plan: dict[str, Imputation]) -> str:
    names = [_name(how) for how in plan.values()]
    return ", ".join(f"{name} on {names.count(name)}" for name in sorted(set(names)))


def _name(how: Imputation) -> str:
    text = f"SimpleImputer({how.strategy})" if isinstance(how, SimpleImputer) else how.name
    return f"{text} with indicator" if getattr(how, "add_indicator", False) else text
