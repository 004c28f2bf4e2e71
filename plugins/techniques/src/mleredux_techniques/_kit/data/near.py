"""Duplicate and near-duplicate rows, whose distance is far below that of typical neighbors."""

from __future__ import annotations

import numpy as np

from mleredux_techniques._kit.data.columns import is_free_text
from mleredux_techniques._kit.data.dataset import Array, Dataset, Frame, Series

NEAR = 0.05
"""Rows are nearly equal if their distance is below this share of the typical distance between neighbors."""
NEAR_IMAGES = 0.2
"""The same for thumbnails of images: one image may be stored in several sizes or qualities."""
CHANCE = 0.01
"""Maximum expected number of rows that are this near by chance; it lowers the threshold for tables with few columns."""
LEAST = 0.005
"""If a smaller share of rows than this (or fewer than 5 rows) is near, that may be chance, and only equal rows
count.
"""
SAME = 0.9
"""Minimum share of the other columns that agree in nearly equal rows."""
MAX_ROWS, MIN_TWINS = 10_000, 10
ALIKE = 0.6
MAX_COLUMNS = 100
MAX_SEARCHED = 10
SAMPLED = 1_000
_FREQUENT = 100
_STEP = 7


def duplicates(dataset: Dataset) -> tuple[int, int]:
    """Count training rows that (nearly) equal an earlier one, and test rows that (nearly) equal a training row."""
    if not dataset.features:
        return 0, 0
    ours, theirs = _plain(dataset, dataset.train), _plain(dataset, dataset.test)
    repeated, shared = ours.duplicated().to_numpy(copy=True), theirs.isin(set(ours)).to_numpy(copy=True)
    near = np.split(_near(dataset) | _near_texts(dataset), [len(dataset.train)])
    for exact, nearly in zip((repeated, shared), near, strict=True):
        if (nearly & ~exact).sum() >= max(5, LEAST * len(exact)):
            exact |= nearly
    return int(repeated.sum()), int(shared.sum())


def twin_correlation(dataset: Dataset) -> float | None:
    """Return the correlation of the test targets with the mean target of equal training rows; None if too few rows are
    equal, in which case nearly equal rows count.
    """
    from mleredux_techniques._kit.data.skill import outputs

    ours, theirs = _plain(dataset, dataset.train), _plain(dataset, dataset.test)
    known = theirs.isin(set(ours)).to_numpy()
    if known.sum() < MIN_TWINS:
        return None
    y, answers = outputs(dataset)
    names, codes = np.unique(ours.to_numpy(), return_inverse=True)
    means = np.stack([np.bincount(codes, column) for column in y.T], axis=1) / np.bincount(codes)[:, None]
    expected, true = means[np.searchsorted(names, theirs.to_numpy()[known])], answers[known]
    expected, true = expected - expected.mean(axis=0), true - true.mean(axis=0)
    return float((expected * true).sum() / max(np.sqrt((expected**2).sum() * (true**2).sum()), 1e-12))


def _plain(dataset: Dataset, frame: Frame) -> Series:
    """Return a key of each row's features, ignoring case, punctuation and spaces in prose."""
    import pandas as pd

    features = list(dataset.features)
    plain = frame[features].astype({name: object if dataset.kinds[name] == "text" else float for name in features})
    for name in features:
        if dataset.kinds[name] == "text" and is_free_text(dataset.train[name]):
            words = plain[name].str.lower().str.replace(r"[\W_]+", " ", regex=True).str.strip()
            plain[name] = words.where(plain[name].notna())
    return pd.util.hash_pandas_object(plain, index=False)


def _near(dataset: Dataset) -> Array:
    """Return which training rows are near an earlier one, then which test rows are near a training row.

    Neighbors are searched in some of the columns, then compared in all of them.
    """
    from scipy.spatial import cKDTree

    marks, first = np.zeros(len(dataset.train) + len(dataset.test), dtype=bool), len(dataset.train)
    measured = [name for name in dataset.of_kind("number") if _is_measured(dataset.train[name])][:MAX_COLUMNS]
    if dataset.thumbnail:
        measured = [name for step in range(_STEP) for name in dataset.thumbnail[step::_STEP]]
    if len(measured) < 2 or max(first, len(dataset.test)) > MAX_ROWS or first < 20:
        return marks
    ours, theirs = _scaled(dataset, measured)
    some = ours[:, :MAX_SEARCHED]
    tree = cKDTree(some)
    typical = float(np.median(tree.query(some[:SAMPLED], k=2)[0][:, 1]))
    share = NEAR_IMAGES if dataset.thumbnail else min(NEAR, (CHANCE / len(ours)) ** (1 / len(measured)))
    near = share * typical
    if near <= 0:
        return marks
    others = [name for name in dataset.features if name not in measured and not dataset.thumbnail]
    bound = near * np.sqrt(len(measured) / some.shape[1])
    pairs = tree.query_pairs(near, output_type="ndarray")
    pairs = pairs[np.linalg.norm(ours[pairs[:, 0]] - ours[pairs[:, 1]], axis=1) <= bound]
    alike = _alike(dataset.train.iloc[pairs[:, 0]], dataset.train.iloc[pairs[:, 1]], others)
    marks[pairs[alike].max(axis=1)] = True
    distance, place = tree.query(theirs[:, :MAX_SEARCHED], distance_upper_bound=near)
    rows = np.flatnonzero(np.isfinite(distance))
    rows = rows[np.linalg.norm(theirs[rows] - ours[place[rows]], axis=1) <= bound]
    marks[first + rows] = _alike(dataset.test.iloc[rows], dataset.train.iloc[place[rows]], others)
    return marks


def _near_texts(dataset: Dataset) -> Array:
    """Return the result of `_near` for prose: texts are near if they share at least `ALIKE` of their word trigrams (A.
    Broder, "On the Resemblance and Containment of Documents", 1997).
    """
    marks, first = np.zeros(len(dataset.train) + len(dataset.test), dtype=bool), len(dataset.train)
    prose = [name for name in dataset.of_kind("text") if is_free_text(dataset.train[name])]
    if not prose or max(first, len(dataset.test)) > MAX_ROWS:
        return marks
    from sklearn.feature_extraction.text import CountVectorizer

    columns = [name for name in dataset.features if name not in prose]
    rows = dataset.rows
    texts = rows[prose].fillna("").astype(str).agg(" ".join, axis=1)
    try:
        runs = CountVectorizer(
            binary=True, ngram_range=(3, 3), token_pattern=r"\w+", max_df=_FREQUENT, dtype=np.int32
        ).fit_transform(texts)
    except ValueError:  # no three words
        return marks
    sizes, both = np.asarray(runs.sum(axis=1)).ravel(), (runs @ runs[:first].T).tocoo()
    row, twin = both.row, both.col
    near = (row > twin) & (both.data >= ALIKE * (sizes[row] + sizes[twin] - both.data))
    row, twin = row[near], twin[near]
    return np.isin(np.arange(len(rows)), row[_alike(rows.iloc[row], rows.iloc[twin], columns)])


def _is_measured(values: Series) -> bool:
    return bool(values.nunique() > max(20, 0.1 * len(values)))


def _scaled(dataset: Dataset, names: list[str]) -> tuple[Array, Array]:
    """Scale columns by their spread and bound them, so that outliers do not dominate; missing values are far away."""
    ours, theirs = (frame[names].to_numpy(dtype=float) for frame in (dataset.train, dataset.test))
    low, middle, high = np.nanquantile(ours, [0.25, 0.5, 0.75], axis=0)
    spread = np.where(high > low, high - low, np.nanstd(ours, axis=0))
    spread = np.where(spread > 0, spread, 1.0)
    scaled = [np.where(np.isnan(values), -20.0, np.arcsinh((values - middle) / spread)) for values in (ours, theirs)]
    return scaled[0], scaled[1]


def _alike(frame: Frame, other: Frame, names: list[str]) -> Array:
    """Return, for each row, whether most of the other columns are equal."""
    if not names:
        return np.ones(len(frame), dtype=bool)
    ours, theirs = (rows[names].reset_index(drop=True) for rows in (frame, other))
    return np.asarray(((ours == theirs) | (ours.isna() & theirs.isna())).sum(axis=1) >= SAME * len(names))
