"""Efficacy of encodings: the competition's metric of the reference models on held-out training rows.

Naive: OrdinalEncoder on every text, numbers unchanged. Strong: the best of a few plans within the training table,
each by cardinality and by the type of the texts.
"""

from __future__ import annotations

from mleredux_techniques._kit.data.columns import amounts, is_free_text
from mleredux_techniques._kit.data.dataset import Dataset, Instance
from mleredux_techniques._kit.data.structure import looks_like_time
from mleredux_techniques._kit.judging.comparison import undecided
from mleredux_techniques._kit.judging.panel import Panel
from mleredux_techniques._kit.judging.results import Efficacy
from mleredux_techniques._kit.vocabulary.encoders import (
    DatetimeEncoder,
    DropFeature,
    Encoding,
    NoEncoding,
    OneHotEncoder,
    OrdinalEncoder,
    TargetEncoder,
    TfidfVectorizer,
)
from mleredux_techniques.encoding.document import EncodingAnalysis

NAIVE = "OrdinalEncoder on every text, numbers unchanged"
FEW = 15
"""Maximum number of distinct values that counts as few."""
NEARLY_ALL_DIFFER = 0.9

_NONE = NoEncoding(name="none")
_DROP = DropFeature(name="drop")
_ONE_HOT = OneHotEncoder(name="OneHotEncoder")
_CAPPED = OneHotEncoder(name="OneHotEncoder", max_categories=50)
_TARGET = TargetEncoder(name="TargetEncoder")
_DATES = DatetimeEncoder(name="DatetimeEncoder")
_WORDS = TfidfVectorizer(name="TfidfVectorizer", max_features=300)


def measure(document: EncodingAnalysis, instance: Instance) -> Efficacy:
    """Execute the recommended encodings; unlisted numbers are unchanged, unlisted texts are dropped."""
    dataset = instance.dataset
    given = {name: _DROP if dataset.kinds[name] == "text" else _NONE for name in dataset.features}
    listed: dict[str, Encoding] = {one.column: one.encoding for one in document.features if one.column in given}
    plan: dict[str, Encoding] = {**given, **listed}
    if contrast(instance)[1][1] == PANEL.plan(naive(dataset)) == PANEL.plan(plan):
        return undecided("All features are numbers that need no encoding.")
    return PANEL.measure(plan, instance)


def naive(dataset: Dataset) -> dict[str, Encoding]:
    """Return the naive plan: OrdinalEncoder on every text, numbers unchanged."""
    ordinal = OrdinalEncoder(name="OrdinalEncoder")
    return {name: ordinal if dataset.kinds[name] == "text" else _NONE for name in dataset.features}


def by_cardinality(dataset: Dataset) -> dict[str, Encoding]:
    """Return a good plan for planted categories: names by columns, many of them by means of the target."""
    return _plan(dataset, _TARGET, _TARGET)


def panel_of(dataset: Dataset) -> dict[str, dict[str, Encoding]]:
    """Return the plans of which the strong one is the best, simplest first."""
    texts, codes = dataset.of_kind("text"), _few_whole_numbers(dataset)
    panel = {NAIVE: naive(dataset)}
    if texts:
        by_words = "texts by words, dates by parts, amounts as numbers, nearly unique values dropped"
        panel |= {
            f"OneHotEncoder on up to {FEW} categories, TargetEncoder above; {by_words}": by_cardinality(dataset),
            f"OneHotEncoder, at most 50 columns each; {by_words}": _plan(dataset, _CAPPED, _DROP),
            f"OneHotEncoder on up to {FEW} categories, others dropped; {by_words}": _plan(dataset, _DROP, _DROP),
        }
    if codes:
        extra: dict[str, Encoding] = dict.fromkeys(codes, _ONE_HOT)
        panel |= {f"{name}; OneHotEncoder on codes": {**plan, **extra} for name, plan in panel.items()}
    return panel


def _plan(dataset: Dataset, many: Encoding, unique: Encoding) -> dict[str, Encoding]:
    """Return the plan by the type of the texts.

    Args:
        many: For texts of many values that repeat.
        unique: For nearly unique texts that are not prose.
    """
    plan: dict[str, Encoding] = dict.fromkeys(dataset.features, _NONE)
    for name in dataset.of_kind("text"):
        values = dataset.train[name].dropna()
        if is_free_text(values):
            plan[name] = _WORDS
        elif looks_like_time(values):
            plan[name] = _DATES
        elif amounts(values) is not None:
            plan[name] = _NONE
        elif values.nunique() <= FEW:
            plan[name] = _ONE_HOT
        else:
            plan[name] = unique if values.nunique() > NEARLY_ALL_DIFFER * len(values) else many
    return plan


def _few_whole_numbers(dataset: Dataset) -> list[str]:
    """Return numbers that may be codes: integers with 3 to `FEW` values."""
    found = []
    for name in dataset.of_kind("number"):
        values = dataset.train[name].dropna()
        if 3 <= values.nunique() <= FEW and not (values % 1 != 0).any():
            found.append(name)
    return found


PANEL = Panel("encoding", NAIVE, naive, panel_of, by_cardinality)
contrast, gap = PANEL.contrast, PANEL.gap
