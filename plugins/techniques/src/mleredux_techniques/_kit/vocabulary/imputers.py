"""Imputations of missing values: a closed vocabulary for documents, executed with scikit-learn."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from mleredux_techniques._kit.data.dataset import Frame
from mleredux_techniques._kit.vocabulary.document import Part

DONORS = 1_000
"""Maximum number of training rows that KNNImputer and IterativeImputer are fitted on."""
NEAREST_FEATURES = 10
"""Number of columns from which IterativeImputer predicts a column, sampled in proportion to correlation."""
MAX_ITERATIONS = 5
MISSING = "missing"


class DropColumn(Part):
    """Drop the column."""

    name: Literal["drop"]


class SimpleImputer(Part):
    """sklearn.impute.SimpleImputer."""

    name: Literal["SimpleImputer"]
    strategy: Literal["mean", "median", "most_frequent", "constant"] = "mean"
    fill_value: Annotated[str, Field(max_length=200)] | float | None = None
    """With strategy `constant`; null: 0 for numbers, `missing` for texts."""
    add_indicator: bool = False


class KNNImputer(Part):
    """sklearn.impute.KNNImputer; numeric columns only."""

    name: Literal["KNNImputer"]
    n_neighbors: Annotated[int, Field(ge=1, le=50)] = 5
    add_indicator: bool = False


class IterativeImputer(Part):
    """sklearn.impute.IterativeImputer; numeric columns only."""

    name: Literal["IterativeImputer"]
    max_iter: Annotated[int, Field(ge=1, le=20)] = 10
    add_indicator: bool = False


Imputation = Annotated[DropColumn | SimpleImputer | KNNImputer | IterativeImputer, Field(discriminator="name")]
"""The imputation of a column: an imputer with its parameters, chosen by `name`."""


def fill(train: Frame, held_out: Frame, imputations: dict[str, Imputation], *, seed: int) -> tuple[Frame, Frame]:
    """Impute numeric columns, fitted on the training rows.

    KNNImputer and IterativeImputer use all columns, standardized; a column without known training values becomes 0.

    Args:
        train: Numbers, NaN if missing.
        held_out: The same columns.
        imputations: The imputation of each column.
    """
    filled, gaps = (train.copy(), held_out.copy()), train.isna().any() | held_out.isna().any()
    if not gaps.any():
        return filled
    groups: dict[Imputation, list[str]] = {}
    for name in train.columns[gaps]:
        groups.setdefault(imputations[name].model_copy(update={"add_indicator": False}), []).append(name)
    for imputation, names in groups.items():
        if isinstance(imputation, SimpleImputer) and imputation.strategy == "median":
            medians = train[names].median()  # the default, for which scikit-learn's checks dominate on small tables
            filled = filled[0].fillna(medians), filled[1].fillna(medians)
            continue
        imputer = imputer_of(imputation, columns=train.shape[1], seed=seed)
        seen = names if isinstance(imputation, SimpleImputer) else list(train)
        imputer.fit(train[seen] if isinstance(imputation, SimpleImputer) else _donors(train, seed))
        for part, source in zip(filled, (train, held_out), strict=True):
            values = imputer.transform(source[seen])
            if seen is not names:
                values = imputer[0].inverse_transform(values)
            part[names] = values[:, [seen.index(name) for name in names]]
    return filled[0].fillna(0.0), filled[1].fillna(0.0)


def fill_texts(train: Frame, held_out: Frame, imputations: dict[str, Imputation]) -> tuple[Frame, Frame]:
    """Impute text columns; imputations that apply only to numbers are replaced by `most_frequent`."""
    filled = train.astype(object), held_out.astype(object)
    for name, imputation in imputations.items():
        value = MISSING
        if isinstance(imputation, SimpleImputer) and imputation.strategy == "constant":
            value = MISSING if imputation.fill_value is None else str(imputation.fill_value)
        elif train[name].notna().any():
            value = str(train[name].mode()[0])
        for frame in filled:
            if (gaps := frame[name].isna()).any():
                frame[name] = frame[name].mask(gaps, value)
    return filled


def imputer_of(imputation: Imputation, *, columns: int, seed: int) -> Any:
    """Return the transformer that executes an imputation; KNNImputer and IterativeImputer standardize first.

    Args:
        columns: Number of input columns.
        seed: Random seed of IterativeImputer.
    """
    from sklearn import impute, pipeline, preprocessing

    if isinstance(imputation, SimpleImputer):
        constant = imputation.strategy == "constant"
        value = _number(imputation.fill_value) if constant else None
        return impute.SimpleImputer(strategy=imputation.strategy, fill_value=value, keep_empty_features=True)
    if isinstance(imputation, KNNImputer):
        tool = impute.KNNImputer(n_neighbors=imputation.n_neighbors, keep_empty_features=True)
    else:
        from sklearn.experimental import enable_iterative_imputer  # noqa: F401

        most = imputation.max_iter if isinstance(imputation, IterativeImputer) else MAX_ITERATIONS
        tool = impute.IterativeImputer(
            max_iter=min(most, MAX_ITERATIONS),
            n_nearest_features=NEAREST_FEATURES if columns > NEAREST_FEATURES + 1 else None,
            random_state=seed,
            keep_empty_features=True,
            skip_complete=True,
        )
    return pipeline.make_pipeline(preprocessing.StandardScaler(), tool)


def _donors(train: Frame, seed: int) -> Frame:
    import numpy as np

    return train.iloc[np.sort(np.random.default_rng(seed).permutation(len(train))[:DONORS])]


def _number(value: str | float | None) -> float:
    try:
        return float(value or 0)
    except ValueError:
        return 0.0
