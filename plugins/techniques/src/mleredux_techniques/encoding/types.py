"""Types of features, by their values and by how they tell the target; where data can't tell, several are right."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from mleredux_techniques._kit.columns import FEW_CODES, amounts, is_free_text
from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.skill import Judge
from mleredux_techniques._kit.structure import looks_like_time
from mleredux_techniques._kit.views import of_values

if TYPE_CHECKING:
    import pandas as pd

Array = np.ndarray[Any, Any]
SCALES: tuple[tuple[str, ...], ...] = (
    ("none", "very low", "low", "medium low", "medium", "moderate", "medium high", "high", "very high", "extreme"),
    ("tiny", "extra small", "small", "medium", "large", "extra large", "huge"),
    ("xxs", "xs", "s", "m", "l", "xl", "xxl", "xxxl"),
    ("terrible", "very bad", "bad", "poor", "fair", "ok", "average", "typical", "good", "very good", "excellent"),
    ("never", "rarely", "seldom", "sometimes", "often", "usually", "always"),
    ("novice", "beginner", "basic", "elementary", "intermediate", "advanced", "expert", "master"),
    ("freezing", "cold", "cool", "mild", "warm", "hot", "boiling"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("none", "trivial", "minor", "mild", "moderate", "major", "severe", "critical", "fatal"),
    ("preschool", "primary", "elementary", "secondary", "high school", "college", "bachelor", "master", "doctorate"),
    ("primary", "secondary", "high school", "bachelors", "masters", "phd", "doctor"),
    ("infant", "child", "teen", "teenager", "young", "adult", "middle aged", "senior", "elderly", "old"),
    ("bronze", "silver", "gold", "platinum", "diamond"),
    ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
    ("very slow", "slow", "normal", "fast", "very fast"),
    ("short", "medium", "long"),
    ("light", "medium", "heavy"),
    ("junior", "mid", "senior", "lead", "principal"),
    ("free", "basic", "standard", "premium", "enterprise"),
    ("low", "normal", "elevated", "high", "urgent", "critical"),
    ("winzig", "klein", "mittel", "mittelgroß", "groß", "sehr groß", "riesig"),
    ("keine", "sehr niedrig", "niedrig", "gering", "mittel", "hoch", "sehr hoch"),
    ("mangelhaft", "schlecht", "ausreichend", "befriedigend", "gut", "sehr gut"),
    ("nie", "selten", "manchmal", "oft", "häufig", "immer"),
    ("minuscule", "très petit", "petit", "moyen", "grand", "très grand", "énorme"),
    ("aucun", "très faible", "faible", "moyen", "élevé", "très élevé", "fort"),
    ("jamais", "rarement", "parfois", "souvent", "toujours"),
    ("mauvais", "passable", "moyen", "bon", "très bon", "excellent"),
    ("diminuto", "pequeño", "mediano", "grande", "muy grande", "enorme"),
    ("ninguno", "muy bajo", "bajo", "medio", "alto", "muy alto"),
    ("nunca", "rara vez", "a veces", "a menudo", "siempre"),
    ("malo", "regular", "bueno", "muy bueno", "excelente"),
    ("piccolo", "medio", "grande", "molto grande", "enorme"),
    ("molto basso", "basso", "medio", "alto", "molto alto"),
    ("muito baixo", "baixo", "médio", "alto", "muito alto"),
    ("pequeno", "médio", "grande", "muito grande", "enorme"),
    ("zeer laag", "laag", "gemiddeld", "hoog", "zeer hoog"),
    ("klein", "middel", "middelgroot", "groot", "zeer groot"),
    ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"),
)
CYCLES: tuple[tuple[str, ...], ...] = (
    ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    (
        *("january", "february", "march", "april", "may", "june", "july"),
        *("august", "september", "october", "november", "december"),
    ),
    ("spring", "summer", "autumn", "fall", "winter"),
    ("n", "ne", "e", "se", "s", "sw", "w", "nw"),
    ("night", "dawn", "morning", "noon", "afternoon", "evening"),
)
UNIQUE = 0.9
REPEATED = 5
"""Whole numbers with this many rows a value may be names."""
TELLING = 0.15
ROUGH, SMOOTH = 0.4, 0.75
"""Shares of the skill of equal values that the values next to them have: of names, and of quantities."""
_TIME = re.compile(r"^[0-2]?\d:[0-5]\d(?::[0-5]\d(?:\.\d+)?)?$")
_MARK = re.compile(r"^([A-Z])\1{0,2}[+-]{0,2}$")
"""School marks and ratings: A+, BB, C-."""
_VERSION = re.compile(r"^(?:v ?\d+(?:\.\d+)+|\d+(?:\.\d+){2,})$")
_STEP = re.compile(r"(?:^|[^\d])(\d+(?:[.,]\d+)?)")


def accepted_types(dataset: Dataset, name: str, judge: Judge) -> list[str]:
    """Return the correct types of a feature, the most specific one first.

    Args:
        judge: Of the dataset.
    """
    values = dataset.train[name].dropna()
    distinct = values.nunique()
    if distinct <= 1:
        return ["constant"]
    if dataset.kinds[name] == "text" and looks_like_time(values):
        return ["datetime"]
    if distinct == 2:
        return ["binary"]
    return _of_text(values, distinct) if dataset.kinds[name] == "text" else _of_number(values, distinct, name, judge)


def _of_text(values: pd.Series[Any], distinct: int) -> list[str]:
    if is_free_text(values):
        return ["text"]
    texts = [str(value).strip().lower() for value in values.unique()]
    if amounts(values) is not None:
        return ["numeric"]
    if all(_TIME.match(text) for text in texts[:1_000]):
        return ["datetime", "cyclic"]
    if distinct >= UNIQUE * len(values):
        return ["identifier", "text"]
    if all(_VERSION.match(text) for text in texts):
        return ["ordinal", "nominal"]
    if distinct <= FEW_CODES and _are_marks([str(value).strip() for value in values.unique()]):
        return ["ordinal"]
    words = _without_common({re.sub(r"[\W_]+", " ", text).strip() for text in texts[:100]})
    if any(_of_scale(words, cycle) for cycle in CYCLES):
        return ["cyclic", "ordinal", "nominal"]
    if any(_of_scale(words, scale) for scale in SCALES) or (distinct <= FEW_CODES and _are_steps(texts)):
        return ["ordinal"]
    return ["nominal"]


def _without_common(words: set[str]) -> set[str]:
    """Return texts without the words that all of them begin or end with: `stage ii` is `ii`."""
    parts = [text.split() for text in sorted(words)]
    while len(parts) > 1 and all(len(part) > 1 for part in parts) and len({part[0] for part in parts}) == 1:
        parts = [part[1:] for part in parts]
    while len(parts) > 1 and all(len(part) > 1 for part in parts) and len({part[-1] for part in parts}) == 1:
        parts = [part[:-1] for part in parts]
    return {" ".join(part) for part in parts}


def _are_marks(texts: list[str]) -> bool:
    """Whether texts are letters, some of them repeated or with a sign."""
    return all(_MARK.match(text) for text in texts) and any(len(text) > 1 for text in texts)


def _of_scale(words: set[str], scale: tuple[str, ...]) -> bool:
    """Whether words are of a scale, in full or abbreviated to three letters or more."""
    if words <= set(scale):
        return len(words) >= 2
    return len(words) >= 3 and all(len(word) >= 3 and any(full.startswith(word) for full in scale) for word in words)


def _are_steps(texts: list[str]) -> bool:
    """Whether texts are one pattern with different small numbers or ranges (`grade 3`, `10-19 years`, `50+`)."""
    first = [_STEP.search(text) for text in texts]
    if any(found is None for found in first):
        return False
    numbers = [float(found[1].replace(",", ".")) for found in first if found]
    patterns = {re.sub(r"\d+(?:[.,]\d+)?", "#", text) for text in texts}
    steps = np.diff(sorted(numbers))
    in_steps = len(set(numbers)) >= len(texts) - 1 and (
        max(numbers) <= FEW_CODES or any(pattern.count("#") > 1 for pattern in patterns)
    )
    return len(patterns) <= 3 and bool(in_steps) and not (steps > 10 * np.median(steps) + 10).any()


def _of_number(values: pd.Series[Any], distinct: int, name: str, judge: Judge) -> list[str]:
    if (values % 1 != 0).any():
        return ["numeric"]
    if distinct == len(values) and _are_numbered(values):
        return ["identifier"]
    if distinct > FEW_CODES and _are_moments(values):
        return ["datetime", "numeric"]
    if distinct > max(FEW_CODES, len(values) // REPEATED):
        return ["numeric", "identifier"] if distinct >= UNIQUE * len(values) else ["numeric"]
    shape = _shape(judge, name)
    if shape == "rough":
        return ["nominal"]
    few = distinct <= FEW_CODES
    if shape == "smooth":
        return ["numeric", *(("ordinal", "cyclic") if few else ("cyclic",))]
    return ["numeric", "ordinal", "nominal", "cyclic"] if few else ["numeric", "nominal", "cyclic"]


def _are_numbered(values: pd.Series[Any]) -> bool:
    """Whether different whole numbers are so close together that measurements would repeat."""
    span = float(values.max() - values.min()) + 1
    return len(values) ** 2 / (2 * span) > 10


def _are_moments(values: pd.Series[Any]) -> bool:
    """Whether whole numbers are days as YYYYMMDD, or seconds or milliseconds since 1970 in 1990 to 2040."""
    import pandas as pd

    known = values.astype("int64")
    if known.between(19_000_101, 21_001_231).all():
        return bool(pd.to_datetime(known.astype(str), format="%Y%m%d", errors="coerce").notna().mean() > 0.99)
    return any(bool(known.between(631_152_000 * unit, 2_208_988_800 * unit).all()) for unit in (1, 1_000))


def _shape(judge: Judge, name: str) -> str | None:
    """Return `rough` if equal values tell the target and the values next to them don't, as names; `smooth` if both do,
    as quantities; None if data can't tell.
    """
    numbers = judge.dataset.train[name].to_numpy(dtype=float)
    order, codes = np.unique(numbers, return_inverse=True)
    count = int((~np.isnan(order)).sum())
    if count < 4:
        return None
    alone = judge.inside(of_values(name, numbers, numbers), judge.folds_of(None) if not judge.ahead else None)
    best = int(alone.argmax())
    if alone[best] < max(TELLING, 5 / np.sqrt(len(numbers))):
        return None
    known = codes < count
    y = judge.y[:, best]
    sums, sizes = (np.bincount(codes[known], weights, count) for weights in (y[known], np.ones(int(known.sum()))))
    beside = (np.roll(sums, 1) + np.roll(sums, -1)) / (np.roll(sizes, 1) + np.roll(sizes, -1))
    beside[[0, -1]] = sums[[1, -2]] / sizes[[1, -2]]
    told = float(np.corrcoef(beside[codes[known]], y[known])[0, 1]) if np.ptp(beside) else 0.0
    share = told / float(alone[best])
    return "rough" if share < ROUGH else "smooth" if share > SMOOTH else None
