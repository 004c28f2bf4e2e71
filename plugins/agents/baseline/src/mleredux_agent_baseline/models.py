"""The candidate models with the kind of features they use, fast models first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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


def logistic(strength: float) -> Callable[[int, int], Any]:
    """Return a factory for logistic regression; a smaller strength means a stronger penalty."""

    def make(seed: int, threads: int) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=strength, max_iter=1000, random_state=seed)

    return make


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


def discriminant(seed: int, threads: int) -> Any:
    """Return linear discriminant analysis with shrinkage."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def boosted_classes(seed: int, threads: int) -> Any:
    """Return histogram gradient boosting."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        learning_rate=0.1, max_iter=200, max_leaf_nodes=15, l2_regularization=1, early_stopping=True,
        n_iter_no_change=15, random_state=seed,
    )  # fmt: skip


def boosted_short(seed: int, threads: int) -> Any:
    """Return histogram gradient boosting for many classes, with few iterations because each has one tree per class."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        learning_rate=0.2, max_iter=60, max_leaf_nodes=31, early_stopping=True, n_iter_no_change=5, random_state=seed
    )


def boosted_numbers(loss: str) -> Callable[[int, int], Any]:
    """Return a factory for histogram gradient boosting on squared or absolute errors."""

    def make(seed: int, threads: int) -> Any:
        from sklearn.ensemble import HistGradientBoostingRegressor

        return HistGradientBoostingRegressor(
            loss=loss, learning_rate=0.06, max_iter=300, max_leaf_nodes=15, l2_regularization=1, early_stopping=True,
            n_iter_no_change=20, random_state=seed,
        )  # fmt: skip

    return make


def forest(kind: str, leaf: int = 1) -> Callable[[int, int], Any]:
    """Return a factory for a random forest or extra-trees model (`ExtraTreesClassifier`, `RandomForestRegressor`,
    …)."""

    def make(seed: int, threads: int) -> Any:
        from sklearn import ensemble

        options: dict[str, Any] = {} if kind.endswith("Classifier") else {"max_features": 0.5}
        return getattr(ensemble, kind)(
            n_estimators=150, min_samples_leaf=leaf, n_jobs=threads, random_state=seed, **options
        )

    return make


def neighbours(kind: str, count: int) -> Callable[[int, int], Any]:
    """Return a factory for distance-weighted nearest neighbors (`KNeighborsClassifier` or `KNeighborsRegressor`)."""

    def make(seed: int, threads: int) -> Any:
        from sklearn import neighbors

        return getattr(neighbors, kind)(n_neighbors=count, weights="distance", n_jobs=threads)

    return make


def vector_classes(cost: float) -> Callable[[int, int], Any]:
    """Return a factory for an RBF support vector machine with probabilities from Platt scaling."""

    def make(seed: int, threads: int) -> Any:
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.svm import SVC

        return CalibratedClassifierCV(SVC(C=cost), ensemble=False, cv=3)

    return make


def vector_numbers(cost: float) -> Callable[[int, int], Any]:
    """Return a factory for RBF support vector regression."""

    def make(seed: int, threads: int) -> Any:
        from sklearn.svm import SVR

        return SVR(C=cost)

    return make


def network(kind: str) -> Callable[[int, int], Any]:
    """Return a factory for a small neural network (`MLPClassifier` or `MLPRegressor`)."""

    def make(seed: int, threads: int) -> Any:
        from sklearn import neural_network

        return getattr(neural_network, kind)(
            hidden_layer_sizes=(100,), alpha=0.1, learning_rate_init=0.005, max_iter=60, random_state=seed
        )

    return make


def ridge(seed: int, threads: int) -> Any:
    """Return ridge regression with a penalty chosen by leave-one-out cross-validation."""
    from sklearn.linear_model import RidgeCV

    return RidgeCV([0.1, 1, 10, 100, 1000])


def ridge_quadratic(seed: int, threads: int) -> Any:
    """Return ridge regression on squares and products."""
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    return make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler(), RidgeCV([10, 100, 1000, 10000]))


def ridge_sparse(seed: int, threads: int) -> Any:
    """Return ridge regression for sparse features."""
    from sklearn.linear_model import Ridge

    return Ridge(1.0, solver="lsqr")


def elastic_net(seed: int, threads: int) -> Any:
    """Return an elastic net with a penalty chosen by cross-validation."""
    from sklearn.linear_model import ElasticNetCV

    return ElasticNetCV(l1_ratio=0.7, cv=3, max_iter=5000, random_state=seed)


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

BY_NAME = {True: {one.name: one for one in CLASSIFIERS}, False: {one.name: one for one in REGRESSORS}}
"""Candidates by whether the target has classes, and by name."""
