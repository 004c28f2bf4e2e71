"""Trees and medians that are fitted without scikit-learn's checks equal scikit-learn's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from mleredux_techniques._kit.judging.reference import LEAF_ROWS, TREES, predict
from mleredux_techniques._kit.vocabulary.imputers import SimpleImputer, fill
from sklearn import impute
from sklearn.tree import DecisionTreeClassifier


def rows(classes: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Return features, outputs, other features and weights; the last class has no row."""
    rng = np.random.default_rng(seed)
    x, others = (np.round(rng.normal(size=(count, 6)), 1) for count in (90, 40))
    if classes:
        y = np.eye(classes + 1)[np.r_[np.arange(classes), rng.integers(0, classes, 90 - classes)]]
    else:
        y = x[:, :1] * x[:, 1:2] + rng.normal(size=(90, 1))
    return x, y, others, rng.integers(1, 4, 90).astype(float) if seed % 2 else None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_trees_of_one_hot_classes_equal_trees_of_classes(classes: int, seed: int) -> None:
    x, y, others, weights = rows(classes, seed)
    level = y.mean(axis=0) if weights is None else weights @ y / weights.sum()
    rng, total = np.random.default_rng(seed), np.zeros((len(others), y.shape[1]))
    for _ in range(TREES):
        share = np.bincount(rng.integers(0, 90, 90), minlength=90) * (1.0 if weights is None else weights)
        kept = np.flatnonzero(share)
        tree = DecisionTreeClassifier(
            max_features="sqrt", min_samples_leaf=LEAF_ROWS, random_state=int(rng.integers(2**31))
        )
        tree.fit(x[kept].astype(np.float32), y[kept].argmax(axis=1), sample_weight=share[kept])
        total[:, tree.classes_] += tree.predict_proba(others.astype(np.float32)) / TREES
    predicted = predict("trees", x, y, others, classes=True, seed=seed, weights=weights)
    assert predicted == pytest.approx(0.97 * total + 0.03 * level, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_imputed_medians_equal_those_of_scikit_learn(seed: int) -> None:
    """Columns with and without gaps, in either table or both, and without any known value."""
    rng = np.random.default_rng(seed)
    train, held_out = (pd.DataFrame(rng.normal(size=(count, 4)), columns=list("abcd")) for count in (31, 20))
    train.loc[rng.random(31) < 0.3, "a"] = np.nan
    held_out.loc[rng.random(20) < 0.3, ["a", "b"]] = np.nan
    train["c"], held_out.index = np.nan, np.arange(100, 120)
    how = SimpleImputer(name="SimpleImputer", strategy="median")
    ours, theirs = fill(train, held_out, dict.fromkeys("abcd", how), seed=0)
    tool = impute.SimpleImputer(strategy="median", keep_empty_features=True).fit(train.to_numpy())
    assert ours.to_numpy() == pytest.approx(tool.transform(train.to_numpy()), abs=0)
    assert theirs.to_numpy() == pytest.approx(tool.transform(held_out.to_numpy()), abs=0)
    assert [*theirs.index] == [*held_out.index] and [*ours] == [*"abcd"]
