"""The reference models and fits that do without scikit-learn's checks equal scikit-learn's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from mleredux_techniques._kit.judging.postprocessing import LEAST, Known, _isotonic, _normalised
from mleredux_techniques._kit.judging.reference import HIDDEN, ITERATIONS, LEAF_ROWS, TREES, predict
from mleredux_techniques._kit.vocabulary.imputers import SimpleImputer, fill
from sklearn import impute
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.tree import DecisionTreeClassifier

CLASSES = (0, 2, 3, 7)
"""Numbers of classes; 0 for numbers."""


def rows(classes: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Return features, outputs, other features and weights; the last class has no row."""
    rng = np.random.default_rng(seed)
    x, others = (np.round(rng.normal(size=(count, 6)), 1) for count in (90, 40))
    if classes:
        y = np.eye(classes + 1)[np.r_[np.arange(classes), rng.integers(0, classes, 90 - classes)]]
    else:
        y = x[:, :1] * x[:, 1:2] + rng.normal(size=(90, 1))
    return x, y, others, rng.integers(1, 4, 90).astype(float) if seed % 2 else None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("classes", CLASSES)
def test_the_network_and_the_linear_model_equal_those_of_scikit_learn(classes: int, seed: int) -> None:
    x, y, others, weights = rows(classes, seed)
    share = None if weights is None else weights / weights.mean()
    how = {"max_iter": ITERATIONS, "solver": "lbfgs"}
    network = {"hidden_layer_sizes": (HIDDEN,), "activation": "tanh", "alpha": 1.0, "random_state": seed, **how}
    options = {"classes": bool(classes), "seed": seed, "weights": weights}
    if not classes:
        expected = MLPRegressor(**network).fit(x, y[:, 0], sample_weight=share).predict(others)[:, None]
        assert predict("network", x, y, others, **options) == pytest.approx(expected, abs=1e-7)
        return
    for model, tool in (("network", MLPClassifier(**network)), ("linear", LogisticRegression(**how))):
        expected = tool.fit(x, y.argmax(axis=1), sample_weight=share).predict_proba(others)
        predicted = predict(model, x, y, others, **options)
        assert predicted[:, :classes] == pytest.approx(expected, abs=1e-7)
        assert not predicted[:, classes:].any()


@pytest.mark.parametrize("model", ["network", "linear"])
def test_a_solver_that_fails_predicts_the_level(model: str) -> None:
    x, y, others, _weights = rows(3, 0)
    predicted = predict(model, x * 1e200, y, others, classes=True, seed=0)
    assert np.isfinite(predicted).all()


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


@pytest.mark.parametrize("seed", range(6))
def test_isotonic_fits_equal_those_of_scikit_learn(seed: int) -> None:
    """Predictions have ties; odd seeds have probabilities that fall as the class gets more frequent."""
    rng = np.random.default_rng(seed)
    ours, theirs = (np.round(rng.dirichlet(np.ones(3), count), 1 + seed % 3) for count in (80, 50))
    codes = np.array([rng.choice(3, p=row / row.sum()) for row in ours])
    codes = (codes + seed % 2) % 3
    columns = []
    for code in range(3):
        tool = IsotonicRegression(out_of_bounds="clip", increasing="auto").fit(ours[:, code], codes == code)
        columns.append(np.maximum(tool.predict(theirs[:, code]), LEAST))
    expected = _normalised(np.column_stack(columns))
    assert _isotonic(Known(ours, codes, pd.DataFrame()), theirs) == pytest.approx(expected, abs=1e-12)


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
