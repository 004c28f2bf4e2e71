"""Convert tables to numeric features of four kinds.

`plain`: numbers with missing values, for boosted trees. `scaled`: imputed and standardized. `text`: sparse words and
letters of the text columns, next to the scaled table. `pixels`: principal components of the images, next to the scaled
table.

Everything is learned from the training rows and never from targets, so all folds share one set of features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mleredux_agent_baseline.columns import Profile, clean, texts

PIXEL_COMPONENTS = 50
TOPICS = 30
STRING_COMPONENTS = 20
LETTERS = 1_500
"""Number of characters of each text that letter features use."""

Pair = tuple[Any, Any]
"""A matrix of the training rows, and one of the test rows."""


class Features:
    """Matrices of the training and test rows, created on first use.

    Args:
        train: Feature columns of the training rows.
        test: Feature columns of the test rows.
        profile: The kinds of the columns.
    """

    def __init__(self, train: pd.DataFrame, test: pd.DataFrame, profile: Profile, seed: int) -> None:
        self.train, self.test, self.profile, self.seed = train, test, profile, seed
        self._pairs: dict[str, Pair] = {}

    def get(self, kind: str) -> Pair:
        """Return the matrices of a kind, of shape (rows, features)."""
        if kind not in self._pairs:
            self._pairs[kind] = getattr(self, f"_make_{kind}")()
        return self._pairs[kind]

    def _make_table(self) -> Pair:
        train, test = clean(self.train, self.profile), clean(self.test, self.profile)
        if not all(pd.api.types.is_float_dtype(kind) for kind in (*train.dtypes, *test.dtypes)):
            from skrub import StringEncoder, TableVectorizer

            encoder = StringEncoder(n_components=STRING_COMPONENTS, random_state=self.seed)
            vectorizer = TableVectorizer(high_cardinality=encoder, cardinality_threshold=30)
            train, test = _fitted(vectorizer, train, test)
        return train.to_numpy(dtype=float), test.to_numpy(dtype=float)

    def _make_words(self) -> Pair:
        """Return TF-IDF features of words and pairs of words."""
        vectorizer = TfidfVectorizer(
            ngram_range=(1, 2), min_df=2, sublinear_tf=True, strip_accents="unicode", max_features=100_000
        )
        return _fitted(vectorizer, texts(self.train, self.profile), texts(self.test, self.profile))

    def _make_letters(self) -> Pair:
        """Return TF-IDF features of character n-grams within words."""
        vectorizer = TfidfVectorizer(
            analyzer="char_wb", ngram_range=(2, 5), min_df=3, sublinear_tf=True, max_features=100_000
        )
        train, test = ([text[:LETTERS] for text in texts(table, self.profile)] for table in (self.train, self.test))
        return _fitted(vectorizer, train, test)

    def _make_topics(self) -> Pair:
        """Return the main components of the words, few enough for any model."""
        train, test = self.get("words")
        components = min(TOPICS, train.shape[1] - 1, train.shape[0] - 1)
        return _fitted(TruncatedSVD(max(components, 1), random_state=self.seed), train, test)

    def _make_plain(self) -> Pair:
        if not self.profile.texts:
            return self.get("table")
        return _concatenated([self.get("table"), self.get("topics")])

    def _make_scaled(self) -> Pair:
        return _scaled(self.get("plain"))

    def _make_text(self) -> Pair:
        table = self.get("table")
        blocks = [_scaled(table)] if table[0].shape[1] else []
        return _concatenated([*blocks, self.get("words"), self.get("letters")])

    def _make_pixels(self) -> Pair:
        train, test = (table[self.profile.images].to_numpy(dtype=float) for table in (self.train, self.test))
        reducer = make_pipeline(PCA(min(PIXEL_COMPONENTS, *train.shape), random_state=self.seed), StandardScaler())
        pixels = _fitted(reducer, train, test)
        return _concatenated([self.get("scaled"), pixels]) if self.get("plain")[0].shape[1] else pixels


def _fitted(transformer: Any, train: Any, test: Any) -> Pair:
    """Fit a transformer to the training rows, and transform both parts."""
    return transformer.fit_transform(train), transformer.transform(test)


def _scaled(pair: Pair) -> Pair:
    """Impute missing values with the median, and standardize each column."""
    scaler = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())
    return _fitted(scaler, *pair)


def _concatenated(pairs: list[Pair]) -> Pair:
    """Concatenate matrices horizontally; the result is sparse if one of them is."""
    if any(sparse.issparse(pair[0]) for pair in pairs):
        joined = [sparse.hstack([sparse.csr_matrix(pair[side]) for pair in pairs], format="csr") for side in (0, 1)]
    else:
        joined = [np.hstack([pair[side] for pair in pairs]) for side in (0, 1)]
    return joined[0], joined[1]


def kinds_for(profile: Profile) -> list[str]:
    """Return the kinds of features that are possible for these columns."""
    has_table = bool(profile.numeric or profile.codes or profile.others or profile.texts)
    kinds = ["plain", "scaled"] if has_table else []
    if profile.texts:
        kinds.append("text")
    if profile.images:
        kinds.append("pixels")
    return kinds
