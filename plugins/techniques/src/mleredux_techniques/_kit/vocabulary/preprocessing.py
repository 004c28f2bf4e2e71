"""Conversion of tables to matrices of finite numbers, with a treatment per column, or else the default.

Treatments are fitted on the training rows alone. By default, numbers get median imputation and standardization; texts
with up to `PLAIN_CATEGORIES` values are one-hot encoded, prose is encoded by its most frequent words, and other texts
are dropped.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.columns import amounts, is_free_text
from mleredux_techniques._kit.data.dataset import Array, Frame, Kind, Series
from mleredux_techniques._kit.vocabulary.encoders import (
    MAX_COLUMNS,
    DropFeature,
    Encoding,
    NoEncoding,
    OneHotEncoder,
    TfidfVectorizer,
    encoder_of,
)
from mleredux_techniques._kit.vocabulary.imputers import DropColumn, Imputation, SimpleImputer, fill, fill_texts
from mleredux_techniques._kit.vocabulary.scalers import NoScaler, Scaler, StandardScaler, scaler_of

Step = tuple[str, Any, Any]

PLAIN_CATEGORIES = 20
ALL_COLUMNS = 1_500
FEWEST_COLUMNS = 5
"""Minimum column limit per feature, within about `ALL_COLUMNS` columns in total; rarer categories share one."""
_MEDIAN = SimpleImputer(name="SimpleImputer", strategy="median")
_CATEGORY = SimpleImputer(name="SimpleImputer", strategy="constant")
_STANDARD = StandardScaler(name="StandardScaler")
_FEW = OneHotEncoder(name="OneHotEncoder", max_categories=PLAIN_CATEGORIES)
_WORDS = TfidfVectorizer(name="TfidfVectorizer", max_features=150)


@dataclass(frozen=True)
class Preprocessing:
    """The treatment of one column; None means the default."""

    imputation: Imputation | None = None
    """The imputation of missing values."""
    encoding: Encoding | None = None
    """The encoding of categories."""
    scaler: Scaler | None = None
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
        blocks = [_indicators(rows, [name for name in kept if getattr(how[name].imputation, "add_indicator", False)])]
        if kept:
            steps = _steps(rows, train, how)
            made, widths = _transformed(steps, train, held_out, rows.codes)
            order = _places(steps, widths, kept)
            blocks.append((made[0][:, order], made[1][:, order]))
    if not sum(block[0].shape[1] for block in blocks):
        return np.zeros((len(rows.train), 1)), np.zeros((len(rows.held_out), 1))
    trained, judged = (np.hstack(parts) for parts in zip(*blocks, strict=True))
    return finite(trained), finite(judged)


def finite(matrix: Array) -> Array:
    """Replace NaN by 0, and clip values too large to be squared."""
    return np.asarray(np.clip(np.nan_to_num(matrix, nan=0.0, posinf=1e12, neginf=-1e12), -1e12, 1e12))


def _with_amounts(rows: Rows) -> Rows:
    """Return the rows with amounts parsed as numbers, in the text columns that are kept unencoded."""
    import pandas as pd

    read: dict[str, tuple[Series, Series]] = {}
    for name, kind in rows.columns.items():
        if kind == "text" and isinstance(rows.how.get(name, _PLAIN).encoding, NoEncoding):
            found = amounts(pd.concat([rows.train[name], rows.held_out[name]], ignore_index=True))
            if found is not None:
                ours, theirs = found.iloc[: len(rows.train)], found.iloc[len(rows.train) :]
                read[name] = ours.set_axis(rows.train.index), theirs.set_axis(rows.held_out.index)
    if not read:
        return rows
    frames = (
        frame.assign(**{name: parts[place] for name, parts in read.items()})
        for place, frame in enumerate((rows.train, rows.held_out))
    )
    train, held_out = frames
    return replace(rows, train=train, held_out=held_out, columns={**rows.columns, **dict.fromkeys(read, "number")})


def _is_dropped(rows: Rows, name: str, how: Preprocessing) -> bool:
    if isinstance(how.imputation, DropColumn) or isinstance(how.encoding, DropFeature):
        return True
    if rows.columns[name] != "text":
        return False
    # models can't use raw texts
    many = how.encoding is None and rows.train[name].nunique() > PLAIN_CATEGORIES
    many = many and not is_free_text(rows.train[name])
    return many or isinstance(how.encoding, NoEncoding)


def _filled(rows: Rows, kept: list[str], how: dict[str, Preprocessing]) -> tuple[Frame, Frame]:
    """Return the kept columns, imputed; numbers that are encoded become texts."""
    import pandas as pd

    texts = {name: how[name].imputation or _CATEGORY for name in kept if rows.columns[name] == "text"}
    numbers = {name: how[name].imputation or _MEDIAN for name in kept if name not in texts}
    parts = zip(
        fill(
            rows.train[list(numbers)].astype(float), rows.held_out[list(numbers)].astype(float), numbers, seed=rows.seed
        ),
        fill_texts(rows.train[list(texts)], rows.held_out[list(texts)], texts),
        strict=True,
    )
    made = [pd.concat(pair, axis=1)[kept] for pair in parts]
    for name in numbers:
        if _encoding(how[name]) is not None:
            for frame in made:
                frame[name] = _texts_of(frame[name].to_numpy())
    return made[0], made[1]


def _encoding(how: Preprocessing) -> Encoding | None:
    """Return the encoding of a numeric column, if any."""
    return None if isinstance(how.encoding, NoEncoding) else how.encoding


def _steps(rows: Rows, train: Frame, wanted: dict[str, Preprocessing]) -> list[Step]:
    """Return the steps of a ColumnTransformer: one per scaler with its numeric columns, and one per encoded column.

    Constant numbers become 0.
    """
    scaled: dict[Scaler | None, list[str]] = {}
    steps: list[Step] = []
    for name in train.columns:
        encoding = _encoding(wanted[name])
        if rows.columns[name] != "text" and encoding is None:
            scaler = wanted[name].scaler or _STANDARD
            varies = isinstance(scaler, NoScaler) or np.ptp(train[name].to_numpy()) > 0
            scaled.setdefault(scaler if varies else None, []).append(name)
            continue
        encoding = encoding or (_WORDS if is_free_text(rows.train[name]) else _FEW)
        tool = encoder_of(encoding, rows.codes, classes=rows.classes, seed=rows.seed, most=_most(rows))
        steps.append((f"encoded {len(steps)}", tool, name if isinstance(encoding, TfidfVectorizer) else [name]))
    return [*steps, *((f"scaled {place}", scaler_of(how), names) for place, (how, names) in enumerate(scaled.items()))]


def _transformed(
    steps: Sequence[Step], train: Frame, held_out: Frame, codes: Array
) -> tuple[tuple[Array, Array], list[int]]:
    """Return the outputs of all steps side by side, for training and held-out rows, and the number of columns of each.

    This does the same as scikit-learn's ColumnTransformer, without its checks, which dominate on small tables.
    """
    found: list[tuple[Array, Array]] = []
    ours: Any
    theirs: Any
    for step, tool, columns in steps:
        ours, theirs = train[columns], held_out[columns]
        if step.startswith("scaled"):  # no column names, which scikit-learn would check
            ours, theirs = ours.to_numpy(), theirs.to_numpy()
        if tool == "drop":
            ours, theirs = np.zeros((len(train), 0)), np.zeros((len(held_out), 0))
        elif tool != "passthrough":
            ours, theirs = tool.fit_transform(ours, codes), tool.transform(theirs)
        found.append((_dense(ours), _dense(theirs)))
    trained, judged = (np.hstack(parts) for parts in zip(*found, strict=True))
    return (trained, judged), [ours.shape[1] for ours, _ in found]


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)


def _places(steps: Sequence[Step], widths: Sequence[int], names: Sequence[str]) -> list[int]:
    """Return the indices of the output columns, ordered by their input columns."""
    places: dict[str, list[int]] = {}
    ends = np.cumsum(widths).tolist()
    for (step, _tool, columns), end, width in zip(steps, ends, widths, strict=True):
        found = list(range(end - width, end))
        if isinstance(columns, str) or step.startswith("encoded"):
            places[columns if isinstance(columns, str) else columns[0]] = found
        else:
            places |= {name: [place] for name, place in zip(columns, found, strict=True)}
    return [place for name in names for place in places[name]]


def _indicators(rows: Rows, names: list[str]) -> tuple[Array, Array]:
    """Return missing indicators for each column with missing values in the training rows."""
    gaps = rows.train[names].isna()
    with_gaps = gaps.columns[gaps.any()]
    return gaps[with_gaps].to_numpy(dtype=float), rows.held_out[with_gaps].isna().to_numpy(dtype=float)


def _most(rows: Rows) -> int:
    """Return the maximum number of columns per feature, so that the total stays within the models' limit."""
    many = [how for how in rows.how.values() if isinstance(how.encoding, OneHotEncoder | TfidfVectorizer)]
    return max(FEWEST_COLUMNS, min(MAX_COLUMNS, ALL_COLUMNS // max(len(many), 1)))


def _texts_of(values: Array) -> Array:
    """Convert numbers to categories: integers without a decimal point."""
    return np.array([str(int(value)) if float(value).is_integer() else repr(float(value)) for value in values], object)
