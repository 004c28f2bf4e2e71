"""From tables to numbers, in four kinds; fitted on training rows only.

`plain`: numbers with gaps, for boosted trees. `scaled`: filled and standardised. `text`: sparse words and letters of
the text columns beside the scaled table. `pixels`: principal components of the images beside the scaled table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mleredux_agent_baseline.columns import Profile, clean, texts

PIXEL_COMPONENTS = 50
STRING_COMPONENTS = 20


class Features:
    """Turns rows of the tables into a matrix.

    Args:
        kind: `plain`, `scaled`, `text` or `pixels`.
        profile: The kinds of the columns.
    """

    def __init__(self, kind: str, profile: Profile, seed: int) -> None:
        self.kind, self.profile, self.seed = kind, profile, seed
        self._table: Any = None
        self._fill: Any = None
        self._words: Any = None
        self._pixels: Any = None

    def fit_transform(self, frame: pd.DataFrame) -> Any:
        """Learn from the rows of `frame` and give their matrix, of shape (rows, features)."""
        table = self._fit_table(frame)
        if self.kind == "plain":
            return table
        self._fill = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())
        blocks = [self._fill.fit_transform(table)] if table.shape[1] else []
        if self.kind == "text":
            self._words = _word_features()
            blocks.append(self._words.fit_transform(texts(frame, self.profile)))
        if self.kind == "pixels":
            pixels = frame[self.profile.images].to_numpy(dtype=float)
            self._pixels = make_pipeline(
                PCA(min(PIXEL_COMPONENTS, *pixels.shape), random_state=self.seed), StandardScaler()
            )
            blocks.append(self._pixels.fit_transform(pixels))
        return self._join(blocks)

    def transform(self, frame: pd.DataFrame) -> Any:
        """The matrix of further rows."""
        table = self._apply_table(frame)
        if self.kind == "plain":
            return table
        blocks = [self._fill.transform(table)] if table.shape[1] else []
        if self._words is not None:
            blocks.append(self._words.transform(texts(frame, self.profile)))
        if self._pixels is not None:
            blocks.append(self._pixels.transform(frame[self.profile.images].to_numpy(dtype=float)))
        return self._join(blocks)

    def _fit_table(self, frame: pd.DataFrame) -> Any:
        table = self._relevant(frame)
        if all(pd.api.types.is_float_dtype(kind) for kind in table.dtypes):
            return table.to_numpy(dtype=float)
        from skrub import StringEncoder, TableVectorizer

        encoder = StringEncoder(n_components=STRING_COMPONENTS, random_state=self.seed)
        self._table = TableVectorizer(high_cardinality=encoder, cardinality_threshold=30)
        return self._table.fit_transform(table).to_numpy(dtype=float)

    def _apply_table(self, frame: pd.DataFrame) -> Any:
        table = self._relevant(frame)
        if self._table is None:
            return table.to_numpy(dtype=float)
        return self._table.transform(table).to_numpy(dtype=float)

    def _relevant(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The table columns; with the texts as strings, where there are no word features of their own."""
        table = clean(frame, self.profile)
        if self.kind != "text":
            for name in self.profile.texts:
                table[name] = frame[name].fillna("").astype(str).astype(object)
        return table

    def _join(self, blocks: list[Any]) -> Any:
        if not blocks:
            raise ValueError("there are no features")
        if any(sparse.issparse(block) for block in blocks):
            return sparse.hstack([sparse.csr_matrix(block) for block in blocks], format="csr")
        return np.hstack(blocks)


def _word_features() -> Any:
    """TF-IDF of words and pairs of words, and of letters within words."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_union

    return make_union(
        TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, strip_accents="unicode", max_features=100_000),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=3, sublinear_tf=True, max_features=100_000),
    )


def kinds_for(profile: Profile) -> list[str]:
    """The kinds of features that these columns allow."""
    has_table = bool(profile.numeric or profile.codes or profile.others or profile.texts)
    kinds = ["plain", "scaled"] if has_table else []
    if profile.texts:
        kinds.append("text")
    if profile.images:
        kinds.append("pixels")
    return kinds
