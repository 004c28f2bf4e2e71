"""Types of features, from the form of their values and their relation with the target; undecidable features have
several accepted types.

There are no word lists: whether words have an order is human knowledge, so either answer is accepted. For numbers, and
for texts that contain numbers or grades, the target shows whether neighboring values are alike, like quantities, or
not, like names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.columns import FEW_CODES, amounts, is_free_text
from mleredux_techniques._kit.data.dataset import Array, Dataset, Series
from mleredux_techniques._kit.data.skill import Judge
from mleredux_techniques._kit.data.structure import looks_like_time
from mleredux_techniques._kit.data.views import in_bins, of_values

UNIQUE = 0.9
REPEATED = 5
"""Values that repeat less often may be identifiers."""
LEAST = 4
"""Minimum number of values for a comparison of neighbors."""
SURE = 8
"""Minimum number of values for deciding that integers are names."""
ONE = 1.1
"""Maximum mean number of values per group, for values that name the groups."""
MANY, OFTEN = 20, 0.2
"""Minimum number of values of a column that belongs to entities, and minimum share of the rows of repeated ones."""
MOST_OFF = 2
"""Maximum number of values outside an order, such as `unknown`."""
TELLING = 1e-4
"""Maximum p-value of a column whose values are predictive of the target."""
ROUGH = 0.6
"""Minimum mean square between neighboring values of names, as a share of that between all values."""
MORE, RANGES = 0.05, 8
"""Minimum skill that values as names gain over this number of ranges (at most half of the values)."""
_RESAMPLES, _CONFIDENCE, _FAR = 300, (0.025, 0.975), 1e9
_TIME = re.compile(r"^[0-2]?\d:[0-5]\d(?::[0-5]\d(?:\.\d+)?)?$")
_GRADE = re.compile(r"^([A-Z])\1{0,2}([+-]*)$")
"""School grades and ratings: A+, BB, C-."""
_VERSION = re.compile(r"^(?:v ?\d+(?:\.\d+)+|\d+(?:\.\d+){2,})$")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")


def describe(dataset: Dataset, name: str, judge: Judge) -> dict[str, Any]:
    """Return the accepted types of a feature, the most specific one first, and, for texts that a person could order,
    the predictive values: `levels`, value → share of the rows and mean, and `noise`.

    Args:
        judge: The judge of the dataset.
    """
    values = dataset.train[name].dropna()
    distinct = values.nunique()
    if distinct <= 1:
        return {"types": ["constant"]}
    if dataset.kinds[name] == "text" and looks_like_time(values):
        return {"types": ["datetime"]}
    if distinct == 2:
        return {"types": ["binary"]}
    if dataset.kinds[name] == "text":
        return _of_text(values, distinct, name, judge)
    return {"types": _of_number(values, distinct, name, judge)}


def _of_text(values: Series, distinct: int, name: str, judge: Judge) -> dict[str, Any]:
    if is_free_text(values):
        return {"types": ["text"]}
    if amounts(values) is not None:
        return {"types": ["numeric"]}
    texts = [str(value) for value in values.unique()]
    if all(_TIME.match(text.strip()) for text in texts[:1_000]):
        return {"types": ["datetime", "cyclic"]}
    if distinct >= UNIQUE * len(values):
        return {"types": ["identifier", "text"]}
    if all(_VERSION.match(text.strip().lower()) for text in texts):
        return {"types": ["ordinal", "nominal"]}
    unique = distinct * REPEATED > len(values) or _names_entities(judge, name)
    names = ["nominal", "identifier", "text"] if unique else ["nominal"]
    levels = _levels(judge, name)
    order, by_numbers = order_of(texts)
    shape = levels.shape(order) if levels and order else None
    if shape == "smooth":
        return {"types": ["ordinal", "cyclic"]}
    if order and by_numbers:
        return {"types": names if shape == "rough" else ["nominal", "ordinal", "cyclic", *names[1:]]}
    details = {} if levels is None or distinct > FEW_CODES else levels.as_json()
    return {"types": ["nominal", "ordinal", "cyclic", *names[1:]], **details}


def order_of(texts: Sequence[str]) -> tuple[list[str], bool]:
    """Return texts ordered by their numbers or grades, without a few others such as `unknown`, and whether numbers
    define the order. The order is empty if too many texts have neither.
    """
    numbered = {text: [float(part.replace(",", ".")) for part in _NUMBER.findall(text)] for text in texts}
    grades = {text: match for text in texts if (match := _GRADE.match(text.strip()))}
    if sum(map(bool, numbered.values())) >= max(LEAST, len(texts) - MOST_OFF):
        held = [text for text, numbers in numbered.items() if numbers]
        before = {text: re.sub(r"\W", "", _NUMBER.split(text)[0]).lower() for text in held}
        return sorted(held, key=lambda text: (before[text], numbered[text])), True
    if len(grades) >= max(LEAST, len(texts) - MOST_OFF):
        signs = {text: match[2].count("-") - match[2].count("+") for text, match in grades.items()}
        return sorted(grades, key=lambda text: (text.strip()[0], -len(grades[text][0].strip("+-")), signs[text])), False
    return [], False


class Levels:
    """The relation of each value of a column with the target.

    Args:
        names: The values.
        shares: Their shares of the rows.
        means: Their means of the target.
        noise: The target's variance within values divided by the number of rows: a mean has variance `noise / share`.
    """

    def __init__(self, names: Sequence[Any], shares: Array, means: Array, noise: float) -> None:
        self.names, self.shares, self.means, self.noise = list(names), shares, means, noise

    def as_json(self) -> dict[str, Any]:
        """Return the values for the truth."""
        rows = zip(self.names, self.shares.round(8).tolist(), self.means.round(8).tolist(), strict=True)
        return {"levels": {str(name): [share, mean] for name, share, mean in rows}, "noise": self.noise}

    def shape(self, order: Sequence[Any]) -> str | None:
        """Return `rough` if neighboring values are no more alike than others, `smooth` if they are, and None if the
        rows can't decide. One frequent value counts no more than two others.
        """
        places = {name: place for place, name in enumerate(self.names)}
        chosen = [places[name] for name in order if name in places]
        if len(chosen) < LEAST:
            return None
        means, errors = self.means[chosen], self.noise / self.shares[chosen]
        weights = np.minimum(self.shares[chosen], 2 * self.shares[chosen].mean())
        padded = (np.pad(part, 1, mode="reflect") for part in (means, errors))
        beside, noise = (np.convolve(part, [0.5, 0, 0.5], "valid") for part in padded)
        apart = (means - beside) ** 2 - errors - noise / 2
        rng = np.random.default_rng(0)
        drawn = rng.multinomial(len(chosen), np.full(len(chosen), 1 / len(chosen)), _RESAMPLES) * weights
        total = np.maximum(drawn.sum(axis=1), 1e-12)
        middle = drawn @ means / total
        spread = drawn @ (means**2 - errors) / total - middle**2
        ratios = (drawn @ apart / total) / np.maximum(spread, 1e-12)
        # values that do not differ beyond noise indicate neither
        low = np.quantile(np.where(spread > 0, ratios, -_FAR), _CONFIDENCE[0])
        high = np.quantile(np.where(spread > 0, ratios, _FAR), _CONFIDENCE[1])
        return "rough" if low > ROUGH else "smooth" if high < ROUGH else None


def levels_of(content: dict[str, Any]) -> Levels | None:
    """Return the levels stored in a truth, if any."""
    if "levels" not in content:
        return None
    shares, means = np.array(list(content["levels"].values())).T
    return Levels(list(content["levels"]), shares, means, content["noise"])


def _levels(judge: Judge, name: str) -> Levels | None:
    """Return the levels of a column for the output that they predict best, if significant."""
    from scipy.stats import f as f_test

    values, y = judge.dataset.train[name], judge.y
    known = values.notna().to_numpy()
    names, codes, sizes = np.unique(values[known].to_numpy(), return_inverse=True, return_counts=True)
    y, count = y[known], len(names)
    if count < LEAST or len(y) < 2 * count:
        return None
    means = np.stack([np.bincount(codes, column) for column in y.T], axis=1) / sizes[:, None]
    within = judge.inflation * (((y - means[codes]) ** 2).sum(axis=0) / (len(y) - count) + 1e-12)
    between = (sizes[:, None] * (means - y.mean(axis=0)) ** 2).sum(axis=0) / (count - 1)
    best = int((between / within).argmax())
    if f_test.sf(between[best] / within[best], count - 1, len(y) - count) * y.shape[1] > TELLING:
        return None
    return Levels(names.tolist(), sizes / len(y), means[:, best], float(within[best] / len(y)))


def _of_number(values: Series, distinct: int, name: str, judge: Judge) -> list[str]:
    few = ["ordinal"] if distinct <= FEW_CODES else []
    if (values % 1 != 0).any():
        return ["numeric", *few]
    if distinct == len(values) and _are_numbered(values):
        return ["identifier"]
    if distinct > FEW_CODES and _are_moments(values):
        return ["datetime", "numeric"]
    years = ["datetime"] if values.between(1_700, 2_100).all() else []
    if _names_entities(judge, name):
        return ["nominal", "identifier", "numeric"]
    if distinct > max(FEW_CODES, len(values) // REPEATED):
        names = ["nominal", "identifier"] if _is_predictive_as_names(judge, name, distinct) else []
        return ["numeric", *years, *(["identifier"] if distinct >= UNIQUE * len(values) else names)]
    levels = _levels(judge, name)
    shape = levels.shape(levels.names) if levels else None
    if shape == "rough" and distinct >= SURE and _is_predictive_as_names(judge, name, distinct):
        return ["nominal"]
    return ["numeric", *few, *years, "cyclic", *(["nominal"] if shape != "smooth" else [])]


def _is_predictive_as_names(judge: Judge, name: str, distinct: int) -> bool:
    """Return whether a number's values as names are significantly more predictive than a few ranges."""
    values = judge.dataset.train[name].to_numpy(dtype=float)
    views = of_values(name, values, values), in_bins(name, values, values, bins=min(RANGES, distinct // 2))
    names, ranges = (float(judge.inside(view).max()) for view in views)
    return bool(names - ranges > max(MORE, 2 / len(values) ** 0.5))


def _names_entities(judge: Judge, name: str) -> bool:
    """Return whether a column is constant within each group of the split, and mostly differs between groups; or whether
    rows with the same value, such as a license number, agree in another column with many values (for numbers, a text,
    since numbers may follow from each other).
    """
    train, kinds = judge.dataset.train, judge.dataset.kinds
    values, groups = train[name], judge.groups
    if groups is not None and values.groupby(groups).nunique().mean() <= ONE and values.nunique() > groups.max() / 2:
        return True
    rows = train[values.duplicated(keep=False) & values.notna()]
    others = (other for other in judge.dataset.features if other != name and "text" in (kinds[name], kinds[other]))
    return len(rows) >= OFTEN * len(train) and any(
        rows[other].nunique() >= MANY and rows.groupby(name)[other].nunique().mean() <= ONE for other in others
    )


def _are_numbered(values: Series) -> bool:
    """Return whether distinct integers are so close together that measurements would repeat."""
    span = float(values.max() - values.min()) + 1
    return len(values) ** 2 / (2 * span) > 10


def _are_moments(values: Series) -> bool:
    """Return whether integers are days as YYYYMMDD, or seconds or milliseconds since 1970, from 1990 to 2040."""
    import pandas as pd

    known = values.astype("int64")
    if known.between(19_000_101, 21_001_231).all():
        return bool(pd.to_datetime(known.astype(str), format="%Y%m%d", errors="coerce").notna().mean() > 0.99)
    return any(bool(known.between(631_152_000 * unit, 2_208_988_800 * unit).all()) for unit in (1, 1_000))
