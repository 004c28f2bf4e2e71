"""The reference models of the leaderboards, from guesses to tuned models; competitions of a kind share one range."""

from __future__ import annotations

from typing import Any

from sklearn.calibration import CalibratedClassifierCV
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNetCV,
    HuberRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeCV,
)
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

SEED = 0


def scaled(*steps: Any) -> Any:
    """Return a pipeline that standardizes the features first."""
    return make_pipeline(StandardScaler(), *steps)


def svc(**options: Any) -> Any:
    """Return a support vector classifier with probabilities from Platt scaling."""
    return scaled(CalibratedClassifierCV(SVC(**options), ensemble=False))


def classifiers() -> dict[str, Any]:
    """Return the reference models of the classification competitions, by name."""
    models: dict[str, Any] = {
        "always the prior": DummyClassifier(strategy="prior"),
        "random, uniform": DummyClassifier(strategy="uniform", random_state=SEED),
        "random, by the prior": DummyClassifier(strategy="stratified", random_state=SEED),
        "Gaussian naive Bayes": GaussianNB(),
        "Bernoulli naive Bayes, scaled": scaled(BernoulliNB()),
        "multinomial naive Bayes": make_pipeline(MinMaxScaler(clip=True), MultinomialNB()),
        "linear discriminant": LinearDiscriminantAnalysis(),
        "linear discriminant, shrinkage": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "quadratic discriminant, regularised": scaled(QuadraticDiscriminantAnalysis(reg_param=0.1)),
        "logistic regression on 2 components": scaled(PCA(2), LogisticRegression(max_iter=2000)),
        "logistic regression on 5 components": scaled(PCA(5), LogisticRegression(max_iter=2000)),
        "AdaBoost": AdaBoostClassifier(random_state=SEED),
        "bagged trees": BaggingClassifier(n_estimators=50, random_state=SEED),
        "gradient boosting": GradientBoostingClassifier(random_state=SEED),
        "histogram gradient boosting": HistGradientBoostingClassifier(random_state=SEED),
        "neural network, 50": scaled(MLPClassifier((50,), max_iter=1000, random_state=SEED)),
        "neural network, 100-50": scaled(MLPClassifier((100, 50), max_iter=1000, random_state=SEED)),
        "SVM, linear": svc(kernel="linear"),
        "SVM, cubic": svc(kernel="poly", degree=3),
        "SVM, radial": svc(),
        "SVM, radial, C=10": svc(C=10),
    }
    for strength in (0.001, 0.01, 0.1, 1, 10):
        models[f"logistic regression, C={strength}"] = scaled(LogisticRegression(C=strength, max_iter=2000))
    for neighbours in (1, 5, 15, 50):
        models[f"{neighbours} nearest neighbours"] = KNeighborsClassifier(neighbours)
        models[f"{neighbours} nearest neighbours, scaled"] = scaled(KNeighborsClassifier(neighbours))
    for depth in (1, 2, 4, None):
        models[f"decision tree, depth {depth or 'any'}"] = DecisionTreeClassifier(max_depth=depth, random_state=SEED)
    for trees in (10, 100, 500):
        models[f"random forest, {trees} trees"] = RandomForestClassifier(trees, random_state=SEED)
        models[f"extra trees, {trees} trees"] = ExtraTreesClassifier(trees, random_state=SEED)
    models["tuned logistic regression"] = GridSearchCV(
        scaled(LogisticRegression(max_iter=2000)),
        {"logisticregression__C": [0.003, 0.03, 0.3, 3, 30]},
        scoring="neg_log_loss",
    )
    models["tuned SVM"] = GridSearchCV(
        svc(), {"calibratedclassifiercv__estimator__C": [0.3, 3, 30]}, scoring="neg_log_loss"
    )
    models["tuned random forest"] = GridSearchCV(
        RandomForestClassifier(200, random_state=SEED), {"max_features": [0.1, 0.3], "min_samples_leaf": [1, 3]}
    )
    names = ("logistic regression, C=0.1", "SVM, radial", "extra trees, 100 trees")
    models["vote of three"] = VotingClassifier([(name, models[name]) for name in names], voting="soft")
    return models


def regressors() -> dict[str, Any]:
    """Return the reference models of the regression competitions (one output each, fitted per output)."""
    models: dict[str, Any] = {
        "always the mean": DummyRegressor(),
        "always the median": DummyRegressor(strategy="median"),
        "always the upper quartile": DummyRegressor(strategy="quantile", quantile=0.75),
        "least squares": LinearRegression(),
        "Bayesian ridge": scaled(BayesianRidge()),
        "Huber regression": scaled(HuberRegressor(max_iter=1000)),
        "tuned ridge": scaled(RidgeCV([0.1, 1, 10, 100, 1000])),
        "tuned lasso": scaled(LassoCV(max_iter=20000, random_state=SEED)),
        "tuned elastic net": scaled(ElasticNetCV(l1_ratio=[0.1, 0.5, 0.9], max_iter=20000, random_state=SEED)),
        "ridge on squares and products": scaled(PolynomialFeatures(2), StandardScaler(), RidgeCV([10, 100, 1000])),
        "least squares on 2 components": scaled(PCA(2), LinearRegression()),
        "least squares on 5 components": scaled(PCA(5), LinearRegression()),
        "AdaBoost": AdaBoostRegressor(random_state=SEED),
        "bagged trees": BaggingRegressor(n_estimators=50, random_state=SEED),
        "gradient boosting": GradientBoostingRegressor(random_state=SEED),
        "gradient boosting, slow": GradientBoostingRegressor(
            n_estimators=300, learning_rate=0.03, subsample=0.5, random_state=SEED
        ),
        "histogram gradient boosting": HistGradientBoostingRegressor(random_state=SEED),
        "histogram gradient boosting, small": HistGradientBoostingRegressor(
            max_iter=100, learning_rate=0.05, max_leaf_nodes=8, random_state=SEED
        ),
        "neural network, 50": standard_target(MLPRegressor(hidden_layer_sizes=(50,), max_iter=2000, random_state=SEED)),
        "neural network, 20, alpha=1": standard_target(
            MLPRegressor(hidden_layer_sizes=(20,), alpha=1, max_iter=2000, random_state=SEED)
        ),
        "kernel ridge, radial": standard_target(KernelRidge(kernel="rbf", gamma=0.01, alpha=0.3)),
        "kernel ridge, quadratic": standard_target(KernelRidge(kernel="poly", degree=2, gamma=0.01, alpha=1)),
    }
    for strength in (0.01, 0.1):
        models[f"lasso, alpha={strength} of the target's deviation"] = standard_target(Lasso(alpha=strength))
    for strength in (1, 100, 1000):
        models[f"ridge, alpha={strength}"] = scaled(Ridge(strength))
    for parts in (1, 3):
        models[f"partial least squares, {parts} components"] = PLSRegression(parts)
    for cost in (0.1, 1, 10):
        models[f"SVM, radial, C={cost}"] = standard_target(SVR(C=cost))
    for neighbours in (1, 5, 15, 50):
        models[f"{neighbours} nearest neighbours, scaled"] = scaled(KNeighborsRegressor(neighbours))
    for depth in (1, 2, 4, None):
        models[f"decision tree, depth {depth or 'any'}"] = DecisionTreeRegressor(max_depth=depth, random_state=SEED)
    for trees in (10, 100, 500):
        models[f"random forest, {trees} trees"] = RandomForestRegressor(trees, random_state=SEED)
        models[f"extra trees, {trees} trees"] = ExtraTreesRegressor(trees, random_state=SEED)
    models["tuned random forest"] = GridSearchCV(
        RandomForestRegressor(100, random_state=SEED), {"max_features": [0.3, 0.6], "min_samples_leaf": [1, 3]}, cv=3
    )
    models["tuned SVM"] = GridSearchCV(
        standard_target(SVR()), {"regressor__svr__C": [0.1, 1, 10], "regressor__svr__gamma": [0.003, 0.01, 0.03]}
    )
    names = ("tuned ridge", "SVM, radial, C=1", "extra trees, 100 trees")
    models["vote of three"] = VotingRegressor([(name, models[name]) for name in names])
    return models


def standard_target(model: Any) -> Any:
    """Return the model on standardized features, fitted to the standardized target."""
    from sklearn.compose import TransformedTargetRegressor

    return TransformedTargetRegressor(regressor=scaled(model), transformer=StandardScaler())
