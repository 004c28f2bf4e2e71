"""A table → a matrix of finite numbers, as a recipe for each column says; what a recipe leaves open is done plainly.

Learned from the training rows alone. Plainly means: numbers get their median and are standardised; texts of up to
`PLAIN_CATEGORIES` values are one-hot encoded, others are left out.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mleredux_techniques.dataset import Kind
from mleredux_techniques.efficacy.encoders import MAX_COLUMNS, encode
from mleredux_techniques.efficacy.imputers import fill_numbers, fill_texts
from mleredux_techniques.efficacy.scalers import scale
from mleredux_techniques.schemas.encoding import DropFeature, Encoding, NoEncoding, OneHotEncoder, TfidfVectorizer
from mleredux_techniques.schemas.missing import DropColumn, Imputation, SimpleImputer
from mleredux_techniques.schemas.scaling import Scaler, StandardScaler

if TYPE_CHECKING:
    import pandas as pd

Array = np.ndarray[Any, Any]

PLAIN_CATEGORIES = 20
ALL_COLUMNS = 1_500
FEWEST_COLUMNS = 5
"""All features become about `ALL_COLUMNS` columns at most, each at least this many: rarer categories share one."""


@dataclass(frozen=True)
class Recipe:
    """What is done to one column; None: what is done plainly."""

    imputation: Imputation | None = None
    encoding: Encoding | None = None
    scaler: Scaler | None = None


@dataclass
class Rows:
    """Rows of a table with what encoders may learn from.

    Attributes:
        columns: Column → kind, of the features.
        codes: Class codes or numbers of the training rows, for encoders that learn from the target.
        classes: Whether `codes` are classes.
    """

    train: pd.DataFrame
    held_out: pd.DataFrame
    columns: dict[str, Kind]
    codes: Array
    classes: bool
    seed: int
    recipes: dict[str, Recipe] = field(default_factory=dict)


def matrices(rows: Rows) -> tuple[Array, Array]:
    """Matrices of the training and the held-out rows, of shapes (rows, features), at least one feature wide."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant or nearly constant columns, imputers that do not converge
        blocks = [*_numbers(rows), *_texts(rows)]
    if not blocks:
        blocks = [(np.zeros((len(rows.train), 1)), np.zeros((len(rows.held_out), 1)))]
    trained, judged = (np.hstack(parts) for parts in zip(*blocks, strict=True))
    return finite(trained), finite(judged)


def finite(matrix: Array) -> Array:
    """The matrix with what is no number as 0, and without values that no model can square."""
    return np.asarray(np.clip(np.nan_to_num(matrix, nan=0.0, posinf=1e12, neginf=-1e12), -1e12, 1e12))


def _numbers(rows: Rows) -> list[tuple[Array, Array]]:
    names, imputations = [], []
    for name, kind in rows.columns.items():
        recipe = rows.recipes.get(name, Recipe())
        if kind == "text" or isinstance(recipe.imputation, DropColumn) or isinstance(recipe.encoding, DropFeature):
            continue
        names.append(name)
        imputations.append(recipe.imputation or SimpleImputer(name="SimpleImputer", strategy="median"))
    if not names:
        return []
    trained = rows.train[names].to_numpy(dtype=float)
    judged = rows.held_out[names].to_numpy(dtype=float)
    filled = fill_numbers(trained, judged, imputations, seed=rows.seed)
    blocks, most = list(filled.indicators), _most(rows)
    for place, name in enumerate(names):
        recipe = rows.recipes.get(name, Recipe())
        pair = filled.train[:, place], filled.held_out[:, place]
        encoding = recipe.encoding
        if encoding is None or isinstance(encoding, NoEncoding):
            scaler = recipe.scaler or StandardScaler(name="StandardScaler")
            blocks.append(scale(scaler, *pair))
        else:
            blocks.append(
                encode(encoding, _texts_of(pair[0]), _texts_of(pair[1]), rows.codes, rows.classes, rows.seed, most)
            )
    return blocks


def _texts(rows: Rows) -> list[tuple[Array, Array]]:
    blocks = []
    for name, kind in rows.columns.items():
        recipe = rows.recipes.get(name, Recipe())
        if kind != "text" or isinstance(recipe.imputation, DropColumn):
            continue
        encoding = recipe.encoding
        if encoding is None:
            if rows.train[name].nunique() > PLAIN_CATEGORIES:
                continue
            encoding = OneHotEncoder(name="OneHotEncoder", max_categories=PLAIN_CATEGORIES)
        if isinstance(encoding, DropFeature | NoEncoding):  # a text as it stands is nothing a model can read
            continue
        imputation = recipe.imputation or SimpleImputer(name="SimpleImputer", strategy="constant")
        trained, judged, indicators = fill_texts(rows.train[name], rows.held_out[name], imputation)
        blocks += indicators
        blocks.append(encode(encoding, trained, judged, rows.codes, rows.classes, rows.seed, _most(rows)))
    return blocks


def _most(rows: Rows) -> int:
    """Columns that one feature may become, so that all together stay within what a model can take."""
    many = [how for how in rows.recipes.values() if isinstance(how.encoding, OneHotEncoder | TfidfVectorizer)]
    return max(FEWEST_COLUMNS, min(MAX_COLUMNS, ALL_COLUMNS // max(len(many), 1)))


def _texts_of(values: Array) -> Array:
    """Numbers as categories: whole ones without a decimal point."""
    return np.array([str(int(value)) if float(value).is_integer() else repr(float(value)) for value in values], object)
