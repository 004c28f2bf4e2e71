"""Conversion of tables to matrices of finite numbers, with a treatment per column, or else the default.

Treatments are fitted on the training rows alone. By default, numbers get median imputation and standardization; texts
with up to `PLAIN_CATEGORIES` values are one-hot encoded, prose is encoded by its most frequent words, and other texts
are dropped.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.columns import amounts, as_classes, is_free_text
from mleredux_techniques._kit.data.dataset import Array, Frame, Kind
from mleredux_techniques._kit.vocabulary import encoders, imputers, scalers

PLAIN_CATEGORIES = 20
ALL_COLUMNS = 1_500
FEWEST_COLUMNS = 5
"""Minimum column limit per feature, within about `ALL_COLUMNS` columns in total; rarer categories share one."""
_MEDIAN = imputers.SimpleImputer(name="SimpleImputer", strategy="median")
_CATEGORY = imputers.SimpleImputer(name="SimpleImputer", strategy="constant")
_STANDARD, _POWER = scalers.LinearScaler(name="StandardScaler"), scalers.PowerTransformer(name="PowerTransformer")
_FEW = encoders.OneHotEncoder(name="OneHotEncoder", max_categories=PLAIN_CATEGORIES)
_WORDS = encoders.TfidfVectorizer(name="TfidfVectorizer", max_features=150)


@dataclass(frozen=True)
class Preprocessing:
    """The treatment of one column; None means the default."""

    imputation: imputers.Imputation | None = None
    """The imputation of missing values."""
    encoding: encoders.Encoding | None = None
    """The encoding of categories."""
    scaler: scalers.Scaler | None = None
    """The scaling of numbers."""


_PLAIN = Preprocessing()


@dataclass
class Rows:
    """Rows of a table with the targets that encoders may use.

    Attributes:
        columns: Maps each feature to its kind.
        codes: Class codes or numbers of the training rows, for encoders that learn from the target.
        classes: Whether `codes` are classes.
        how: The treatments of columns.
    """

    train: Frame
    held_out: Frame
    columns: dict[str, Kind]
    codes: Array
    classes: bool
    seed: int
    how: dict[str, Preprocessing] = field(default_factory=dict)


def matrices(rows: Rows) -> tuple[Array, Array]:
    """Return matrices of the training and the held-out rows, of shapes (rows, features), with at least one feature.

    Columns keep the table's order regardless of their treatment, because the models' random draws depend on it.
    """
    rows = _with_amounts(rows)
    how = {name: rows.how.get(name, _PLAIN) for name in rows.columns}
    kept = [name for name in rows.columns if not _is_dropped(rows, name, how[name])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant or nearly constant columns, imputers that do not converge
        train, held_out = _filled(rows, kept, how)
        marked = [name for name in kept if getattr(how[name].imputation, "add_indicator", False)]
        blocks = [_indicators(rows, marked), *_columns(rows, train, held_out, how)]
    if not sum(block[0].shape[1] for block in blocks):
        return np.zeros((len(rows.train), 1)), np.zeros((len(rows.held_out), 1))
    trained, judged = (np.hstack(parts) for parts in zip(*blocks, strict=True))
    return finite(trained), finite(judged)


def finite(matrix: Array) -> Array:
    """Replace NaN with 0, and clip values too large to be squared."""
    return np.asarray(np.clip(np.nan_to_num(matrix, nan=0.0, posinf=1e12, neginf=-1e12), -1e12, 1e12))


def _with_amounts(rows: Rows) -> Rows:
    """Return the rows with amounts parsed as numbers, in the text columns that are kept unencoded."""
    import pandas as pd

    for name, kind in rows.columns.items():
        if kind == "text" and isinstance(rows.how.get(name, _PLAIN).encoding, encoders.NoEncoding):
            numbers = amounts(pd.concat([rows.train[name], rows.held_out[name]], ignore_index=True))
            if numbers is not None:
                ours, theirs = np.split(numbers.to_numpy(), [len(rows.train)])
                train, held_out = rows.train.assign(**{name: ours}), rows.held_out.assign(**{name: theirs})
                rows = replace(rows, train=train, held_out=held_out, columns={**rows.columns, name: "number"})
    return rows


def _is_dropped(rows: Rows, name: str, how: Preprocessing) -> bool:
    if isinstance(how.imputation, imputers.DropColumn) or isinstance(how.encoding, encoders.DropFeature):
        return True
    if rows.columns[name] != "text":
        return False
    # models can't use raw texts
    many = how.encoding is None and rows.train[name].nunique() > PLAIN_CATEGORIES
    many = many and not is_free_text(rows.train[name])
    return many or isinstance(how.encoding, encoders.NoEncoding)


def _filled(rows: Rows, kept: list[str], how: dict[str, Preprocessing]) -> tuple[Frame, Frame]:
    """Return the kept columns, imputed; numbers that are encoded become texts."""
    import pandas as pd

    texts = {name: how[name].imputation or _CATEGORY for name in kept if rows.columns[name] == "text"}
    numbers = {name: how[name].imputation or _MEDIAN for name in kept if name not in texts}
    train, held_out = (frame[list(numbers)].astype(float) for frame in (rows.train, rows.held_out))
    filled = imputers.fill(train, held_out, numbers, seed=rows.seed)
    if texts:
        others = imputers.fill_texts(rows.train[list(texts)], rows.held_out[list(texts)], texts)
        filled = pd.concat([filled[0], others[0]], axis=1)[kept], pd.concat([filled[1], others[1]], axis=1)[kept]
    for name in numbers:
        if _encoding(how[name]) is not None:
            for frame in filled:
                frame[name] = as_classes(frame[name])
    return filled


def _encoding(how: Preprocessing) -> encoders.Encoding | None:
    """Return the encoding of a numeric column, if any."""
    return None if isinstance(how.encoding, encoders.NoEncoding) else how.encoding


def _columns(rows: Rows, train: Frame, held_out: Frame, how: dict[str, Preprocessing]) -> list[tuple[Array, Array]]:
    """Return the matrices of each column, for training and held-out rows.

    This does the same as scikit-learn's ColumnTransformer, without its checks, which dominate on small tables. Numbers
    with equal scalers are fitted together; constant numbers become 0, and box-cox is replaced by yeo-johnson where it
    does not apply.
    """
    from mleredux_techniques._kit.vocabulary.transforms import encoded, scaled

    arrays: dict[str, tuple[Array, Array]] = {}
    alike: dict[scalers.Scaler | None, list[str]] = {}
    options: dict[str, Any] = {"classes": rows.classes, "seed": rows.seed, "most": _most(rows)}
    for name in train.columns:
        encoding = _encoding(how[name])
        if rows.columns[name] != "text" and encoding is None:
            scaler = how[name].scaler or _STANDARD
            if isinstance(scaler, scalers.PowerTransformer) and train[name].min() <= 0:
                scaler = _POWER
            varies = isinstance(scaler, scalers.NoScaler) or np.ptp(train[name].to_numpy()) > 0
            alike.setdefault(scaler if varies else None, []).append(name)
            continue
        encoding = encoding or (_WORDS if is_free_text(rows.train[name]) else _FEW)
        arrays[name] = encoded(encoding, train[name], held_out[name], rows.codes, **options)
    for shared, names in alike.items():  # no column names, which scikit-learn would check
        both = scaled(shared, train[names].to_numpy(), held_out[names].to_numpy())
        arrays |= {name: (both[0][:, [place]], both[1][:, [place]]) for place, name in enumerate(names)}
    return [arrays[name] for name in train.columns]


def _indicators(rows: Rows, names: list[str]) -> tuple[Array, Array]:
    """Return missing indicators for each column with missing values in the training rows."""
    gaps = rows.train[names].isna()
    with_gaps = gaps.columns[gaps.any()]
    return gaps[with_gaps].to_numpy(dtype=float), rows.held_out[with_gaps].isna().to_numpy(dtype=float)


def _most(rows: Rows) -> int:
    """Return the maximum number of columns per feature, so that the total stays within the models' limit."""
    wide = encoders.OneHotEncoder | encoders.TfidfVectorizer
    many = [how for how in rows.how.values() if isinstance(how.encoding, wide)]
    return max(FEWEST_COLUMNS, min(encoders.MAX_COLUMNS, ALL_COLUMNS // max(len(many), 1)))
