"""The candidate models with the kind of features they use, fast models first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

SMALL, MIDDLE, LARGE = 5_000, 30_000, 10_000_000


@dataclass(frozen=True)
class Candidate:
    """A model to try.

    Attributes:
        name: For logs; unique.
        features: The kind of features it uses.
        make: `make(seed, threads)` returns a new scikit-learn estimator.
        max_rows: Maximum number of training rows.
        min_rows: Minimum number of training rows at which it is worth its time.
        max_columns: Maximum number of features.
        max_classes: Maximum number of classes.
        joint: Whether it fits many numeric targets together.
    """

    name: str
    features: str
    make: Callable[[int, int], Any]
    max_rows: int = LARGE
    max_columns: int = LARGE
    min_rows: int = 0
    max_classes: int = 1000
    joint: bool = True


def estimator(path: str, *names: str, **options: Any) -> Callable[[int, int], Any]:
    """Return a factory for a scikit-learn estimator.

    Args:
        path: Its module and class under `sklearn`, such as `svm.SVR`.
        names: Names of its parameters that depend on the run: `random_state` and `n_jobs`.
        options: Its other parameters.
    """

    def make(seed: int, threads: int) -> Any:
        module, _, name = path.rpartition(".")
        of_run = {"random_state": seed, "n_jobs": threads}
        return getattr(import_module(f"sklearn.{module}"), name)(**options, **{part: of_run[part] for part in names})

    return make


def logistic(strength: float) -> Callable[[int, int], Any]:
    """Return a factory for logistic regression; a smaller strength means a stronger penalty."""
    return estimator("linear_model.LogisticRegression", "random_state", C=strength, max_iter=1000)


def logistic_words(strength: float) -> Callable[[int, int], Any]:
    """Return a factory for one-vs-rest logistic regression by coordinate descent, with few iterations for sparse
    words."""

    def make(seed: int, threads: int) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.multiclass import OneVsRestClassifier

        model = LogisticRegression(
            C=strength, solver="liblinear", dual=True, tol=0.01, max_iter=40, random_state=seed
        )  # fmt: skip
        return OneVsRestClassifier(model)

    return make


discriminant = estimator("discriminant_analysis.LinearDiscriminantAnalysis", solver="lsqr", shrinkage="auto")
"""Linear discriminant analysis with shrinkage."""

boosted_classes = estimator(
    "ensemble.HistGradientBoostingClassifier", "random_state", learning_rate=0.1, max_iter=200, max_leaf_nodes=15,
    l2_regularization=1, early_stopping=True, n_iter_no_change=15,
)  # fmt: skip
"""Histogram gradient boosting."""

boosted_short = estimator(
    "ensemble.HistGradientBoostingClassifier", "random_state", learning_rate=0.2, max_iter=60, max_leaf_nodes=31,
    early_stopping=True, n_iter_no_change=5,
)  # fmt: skip
"""Histogram gradient boosting for many classes, with few iterations because each has one tree per class."""


def boosted_numbers(loss: str) -> Callable[[int, int], Any]:
    """Return a factory for histogram gradient boosting on squared or absolute errors."""
    return estimator(
        "ensemble.HistGradientBoostingRegressor", "random_state", loss=loss, learning_rate=0.06, max_iter=300,
        max_leaf_nodes=15, l2_regularization=1, early_stopping=True, n_iter_no_change=20,
    )  # fmt: skip


def forest(kind: str, leaf: int = 1) -> Callable[[int, int], Any]:
    """Return a factory for a random forest or extra-trees model (`ExtraTreesClassifier`, `RandomForestRegressor`,
    …)."""
    options: dict[str, Any] = {} if kind.endswith("Classifier") else {"max_features": 0.5}
    return estimator(f"ensemble.{kind}", "n_jobs", "random_state", n_estimators=150, min_samples_leaf=leaf, **options)


def neighbours(kind: str, count: int) -> Callable[[int, int], Any]:
    """Return a factory for distance-weighted nearest neighbors (`KNeighborsClassifier` or `KNeighborsRegressor`)."""
    return estimator(f"neighbors.{kind}", "n_jobs", n_neighbors=count, weights="distance")


def vector_classes(cost: float) -> Callable[[int, int], Any]:
    """Return a factory for an RBF support vector machine with probabilities from Platt scaling."""

    def make(seed: int, threads: int) -> Any:
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.svm import SVC

        return CalibratedClassifierCV(SVC(C=cost), ensemble=False, cv=3)

    return make


def vector_numbers(cost: float) -> Callable[[int, int], Any]:
    """Return a factory for RBF support vector regression."""
    return estimator("svm.SVR", C=cost)


def network(kind: str) -> Callable[[int, int], Any]:
    """Return a factory for a small neural network (`MLPClassifier` or `MLPRegressor`)."""
    options = {"hidden_layer_sizes": (100,), "alpha": 0.1, "learning_rate_init": 0.005, "max_iter": 60}
    return estimator(f"neural_network.{kind}", "random_state", **options)


ridge = estimator("linear_model.RidgeCV", alphas=[0.1, 1, 10, 100, 1000])
"""Ridge regression with a penalty chosen by leave-one-out cross-validation."""


def ridge_quadratic(seed: int, threads: int) -> Any:
    """Return ridge regression on squares and products."""
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    return make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler(), RidgeCV([10, 100, 1000, 10000]))


ridge_sparse = estimator("linear_model.Ridge", alpha=1.0, solver="lsqr")
"""Ridge regression for sparse features."""

elastic_net = estimator("linear_model.ElasticNetCV", "random_state", l1_ratio=0.7, cv=3, max_iter=5000)
"""An elastic net with a penalty chosen by cross-validation."""

CLASSIFIERS = (
    Candidate("logistic regression, C=0.3", "scaled", logistic(0.3)),
    Candidate("words, logistic regression, C=3", "text", logistic_words(3), 200_000),
    Candidate("pixels, logistic regression, C=0.03", "pixels", logistic(0.03)),
    Candidate("logistic regression, C=3", "scaled", logistic(3), MIDDLE),
    Candidate("SVM, radial, C=5", "scaled", vector_classes(5), SMALL, max_classes=30),
    Candidate("histogram gradient boosting", "plain", boosted_classes, max_classes=4),
    Candidate("extra trees", "scaled", forest("ExtraTreesClassifier"), 200_000),
    Candidate("linear discriminant", "scaled", discriminant, MIDDLE),
    Candidate("neural network", "scaled", network("MLPClassifier"), MIDDLE),
    Candidate("pixels, SVM, radial, C=5", "pixels", vector_classes(5), SMALL, max_classes=30),
    Candidate("words, logistic regression, C=0.7", "text", logistic_words(0.7), 200_000),
    Candidate("nearest neighbors, 5", "scaled", neighbours("KNeighborsClassifier", 5), MIDDLE),
    Candidate("logistic regression, C=0.03", "scaled", logistic(0.03), MIDDLE),
    Candidate("random forest, leaves of 2", "scaled", forest("RandomForestClassifier", 2), 200_000),
    Candidate("pixels, extra trees", "pixels", forest("ExtraTreesClassifier"), 200_000),
    Candidate("SVM, radial, C=0.7", "scaled", vector_classes(0.7), SMALL, max_classes=30),
    Candidate("histogram gradient boosting, short", "plain", boosted_short, min_rows=SMALL, max_classes=30),
)
"""Candidates for classes."""

REGRESSORS = (
    Candidate("ridge", "scaled", ridge),
    Candidate("words, ridge", "text", ridge_sparse, 200_000),
    Candidate("pixels, ridge", "pixels", ridge),
    Candidate("SVM, radial, C=1", "scaled", vector_numbers(1), SMALL, joint=False),
    Candidate("ridge on squares and products", "scaled", ridge_quadratic, SMALL, 40),
    Candidate("extra trees, leaves of 3", "scaled", forest("ExtraTreesRegressor", 3), 200_000),
    Candidate("histogram gradient boosting", "plain", boosted_numbers("squared_error"), joint=False),
    Candidate("SVM, radial, C=0.1", "scaled", vector_numbers(0.1), SMALL, joint=False),
    Candidate("nearest neighbors, 10", "scaled", neighbours("KNeighborsRegressor", 10), MIDDLE),
    Candidate("elastic net", "scaled", elastic_net, MIDDLE, joint=False),
    Candidate("random forest, leaves of 3", "scaled", forest("RandomForestRegressor", 3), 200_000),
    Candidate("pixels, extra trees", "pixels", forest("ExtraTreesRegressor", 3), 200_000),
    Candidate("neural network", "scaled", network("MLPRegressor"), MIDDLE),
    Candidate("histogram gradient boosting, absolute", "plain", boosted_numbers("absolute_error"), joint=False),
)
"""Candidates for numbers."""

BY_NAME = {True: {family.name: family for family in CLASSIFIERS}, False: {family.name: family for family in REGRESSORS}}
"""Candidates by whether the target has classes, and by name."""
