"""The pipeline search space, and pipelines as scikit-learn estimators: everything is fitted within a fold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from mleredux_agent_baseline.kit import Profile, clean, texts
from sklearn import ensemble, impute, linear_model, neighbors, neural_network, preprocessing
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline, make_pipeline

from mleredux_agent_automl.advice import Advice, Strategy

Choices = dict[str, Any]
"""The parameters of one trial, by name."""
FAMILIES = ("boosting", "linear", "forest", "network", "neighbors")
FEW_VALUES = 12
"""Categories with more values are encoded by `many`, which is part of the search."""
SLOW_ROWS = 20_000
"""Neighbors and networks are not fitted to tables with more rows."""
TEXT = "text:"


@dataclass
class Columns:
    """The columns of a table, by required treatment.

    Attributes:
        few: Categories with few values.
        many: Categories with many values.
        text: Whether there is a column `TEXT`.
    """

    numbers: list[str] = field(default_factory=list)
    few: list[str] = field(default_factory=list)
    many: list[str] = field(default_factory=list)
    pixels: list[str] = field(default_factory=list)
    text: bool = False


def table_of(frames: tuple[pd.DataFrame, pd.DataFrame], profile: Profile, advice: Advice) -> tuple[Any, Any, Columns]:
    """Clean both tables row by row and list their columns; dates become seconds, numeric names become text."""
    tables = [clean(frame, profile) for frame in frames]
    columns = Columns(pixels=list(profile.images))
    for name in tables[0].columns:
        values = tables[0][name]
        strategy = advice.encoders.get(name, {}).get("name")
        if strategy == "DatetimeEncoder" or (not strategy and _is_date(values)):
            for table in tables:
                table[name] = _seconds(table[name])
            columns.numbers.append(name)
        elif pd.api.types.is_float_dtype(values) and strategy in (None, "none", "drop"):
            columns.numbers.append(name)
        else:
            for table in tables:
                table[name] = table[name].astype(object).where(table[name].notna(), "(missing)").astype(str)
            (columns.few if values.nunique() <= FEW_VALUES else columns.many).append(name)
    for table, frame in zip(tables, frames, strict=True):
        for name in columns.pixels:
            table[name] = frame[name].astype(float)
        if profile.texts:
            table[TEXT] = texts(frame, profile)
            columns.text = True
    return tables[0], tables[1], columns


def _is_date(values: pd.Series[Any]) -> bool:
    some = values.dropna().head(500)
    return (
        values.dtype == object and len(some) > 0 and bool(some.astype(str).str.match(r"\d{4}-\d\d-\d\d").mean() > 0.95)
    )


def _seconds(values: pd.Series[Any]) -> Any:
    moments = pd.to_datetime(values, errors="coerce", utc=True, format="mixed")
    return (moments - pd.Timestamp(0, tz="UTC")).dt.total_seconds()


def suggest(trial: Any, columns: Columns, advice: Advice, rows: int, *, labels: bool) -> Choices:
    """Suggest a pipeline of the search space; treatments advised for a column are not searched.

    Args:
        trial: A trial of Optuna.
        labels: Whether labels are submitted, in which case class weights may help.
    """
    families = FAMILIES if rows <= SLOW_ROWS else FAMILIES[:3]
    choices: Choices = {"family": (family := trial.suggest_categorical("family", families))}
    if columns.numbers:
        choices["indicator"] = trial.suggest_categorical("indicator", [False, True])
        if family != "forest" and family != "boosting":
            choices["scaler"] = trial.suggest_categorical("scaler", ["StandardScaler", "QuantileTransformer"])
    if columns.many:
        choices["many"] = trial.suggest_categorical("many", ["TargetEncoder", "OrdinalEncoder", "drop"])
    if labels and advice.class_weight is None:
        choices["balanced"] = trial.suggest_categorical("balanced", [False, True])
    if family == "boosting":
        choices["rate"] = trial.suggest_float("rate", 0.02, 0.3, log=True)
        choices["leaves"] = trial.suggest_int("leaves", 4, 63, log=True)
        choices["iterations"] = trial.suggest_int("iterations", 40, 400, log=True)
    elif family == "forest":
        choices["leaf"] = trial.suggest_int("leaf", 1, 20, log=True)
        choices["share"] = trial.suggest_float("share", 0.1, 1.0)
    elif family == "neighbors":
        choices["neighbors"] = trial.suggest_int("neighbors", 1, 60, log=True)
    else:
        choices["strength"] = trial.suggest_float("strength", 1e-3, 1e2, log=True)
    return choices


FIRST: tuple[Choices, ...] = (
    {"family": "linear", "scaler": "StandardScaler", "indicator": False, "many": "TargetEncoder", "strength": 1.0},
    {"family": "boosting", "indicator": False, "many": "TargetEncoder", "rate": 0.1, "leaves": 15, "iterations": 100},
    {"family": "forest", "indicator": False, "many": "TargetEncoder", "leaf": 2, "share": 0.4},
    {"family": "network", "scaler": "QuantileTransformer", "indicator": True, "many": "TargetEncoder", "strength": 1.0},
    {"family": "neighbors", "scaler": "QuantileTransformer", "indicator": False, "many": "drop", "neighbors": 8},
)
"""Pipelines that are tried first, regardless of the data."""


def encoders_of(columns: Columns, advice: Advice, choices: Choices) -> dict[str, Strategy]:
    """Return the encoding of each category."""
    usual = dict.fromkeys(columns.few, "OneHotEncoder") | dict.fromkeys(columns.many, choices.get("many", "drop"))
    return {name: advice.encoders.get(name, {"name": other}) for name, other in usual.items()}


def estimator(choices: Choices, columns: Columns, advice: Advice, *, classes: bool, joint: bool, seed: int) -> Any:
    """Build the unfitted pipeline for some choices.

    Args:
        joint: Whether several numeric targets are predicted together.
    """
    linear = choices["family"] == "linear"
    steps: list[tuple[str, Any, Any]] = []
    numbers = {name: (advice.imputers.get(name), advice.scalers.get(name)) for name in columns.numbers}
    for names in _by_treatment(numbers):
        steps.append((f"numbers {len(steps)}", _number(names[0], choices, advice, seed), names))
    encoders = encoders_of(columns, advice, choices)
    for names in _by_treatment(encoders):
        steps.append((f"categories {len(steps)}", _encoder(encoders[names[0]], classes, seed), names))
    if columns.pixels:
        steps.append(("pixels", make_pipeline(PCA(min(50, len(columns.pixels)), random_state=seed)), columns.pixels))
    if columns.text:
        words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, max_features=50_000)
        text = words if linear else make_pipeline(words, TruncatedSVD(30, random_state=seed))
        steps.append(("text", text, TEXT))  # a single column is passed as texts
    weight = "balanced" if advice.class_weight == "balanced" or choices.get("balanced") else None
    model = _model(choices, classes, weight, seed)
    if joint and choices["family"] == "boosting":
        model = MultiOutputRegressor(model)
    return Pipeline([("columns", ColumnTransformer(steps, sparse_threshold=1.0 if linear else 0.0)), ("model", model)])


def _by_treatment(treatments: dict[str, Any]) -> list[list[str]]:
    """Group columns by treatment; one transformer of many columns is much faster than many of one."""
    groups: dict[str, list[str]] = {}
    for name, treatment in treatments.items():
        groups.setdefault(repr(treatment), []).append(name)
    return list(groups.values())


def _number(name: str, choices: Choices, advice: Advice, seed: int) -> Any:
    imputer = _imputer(advice.imputers.get(name, {}), bool(choices.get("indicator")))
    if imputer == "drop":
        return "drop"
    scaler = _scaler(advice.scalers.get(name, {"name": choices.get("scaler", "none")}), seed)
    if scaler is None:
        return imputer
    return make_pipeline(scaler, imputer) if isinstance(scaler, _Log) else make_pipeline(imputer, scaler)


def _imputer(strategy: Strategy, indicator: bool) -> Any:
    name = strategy.get("name", "SimpleImputer")
    indicator = bool(strategy.get("add_indicator", indicator))
    if name == "drop":
        return "drop"
    how = strategy.get("strategy", "median")
    how = how if how in ("mean", "median", "most_frequent", "constant") else "median"
    return impute.SimpleImputer(strategy=how, add_indicator=indicator, keep_empty_features=True)


class _Log(BaseEstimator, TransformerMixin):  # type: ignore[misc]
    """Signed log(1 + |x|); missing values stay missing."""

    def fit(self, x: Any, y: Any = None) -> _Log:
        return self

    def transform(self, x: Any) -> Any:
        values = np.asarray(x, dtype=float)
        return np.sign(values) * np.log1p(np.abs(values))

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _scaler(strategy: Strategy, seed: int) -> Any:
    scalers: dict[str, Any] = {
        "StandardScaler": preprocessing.StandardScaler(),
        "MinMaxScaler": preprocessing.MinMaxScaler(),
        "MaxAbsScaler": preprocessing.MaxAbsScaler(),
        "RobustScaler": preprocessing.RobustScaler(),
        "PowerTransformer": preprocessing.PowerTransformer(),
        "QuantileTransformer": preprocessing.QuantileTransformer(
            n_quantiles=200, output_distribution="normal", random_state=seed
        ),
        "log1p": _Log(),
    }
    return scalers.get(strategy["name"])


def _encoder(strategy: Strategy, classes: bool, seed: int) -> Any:
    name, order = strategy["name"], strategy.get("categories")
    if name == "drop":
        return "drop"
    if name == "TargetEncoder":
        kind = "auto" if classes else "continuous"
        return preprocessing.TargetEncoder(target_type=kind, random_state=seed, shuffle=True)
    if name in ("OrdinalEncoder", "CountEncoder", "none"):
        known = [[*map(str, order), "(missing)"]] if isinstance(order, list) and order else "auto"
        return preprocessing.OrdinalEncoder(
            categories=known, handle_unknown="use_encoded_value", unknown_value=-1, dtype=float
        )
    return preprocessing.OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3, max_categories=100)


def _model(choices: Choices, classes: bool, weight: str | None, seed: int) -> Any:
    family, strength = choices["family"], choices.get("strength", 1.0)
    if family == "boosting":
        kind = ensemble.HistGradientBoostingClassifier if classes else ensemble.HistGradientBoostingRegressor
        options = {"learning_rate": choices["rate"], "max_leaf_nodes": choices["leaves"]}
        options |= {"max_iter": choices["iterations"], "early_stopping": False, "random_state": seed}
        if classes and weight:  # with weighted rows, scikit-learn computes each quantile separately, which is slow
            options |= {"class_weight": weight, "max_bins": 63}
        return kind(**options)
    if family == "forest":
        kind = ensemble.ExtraTreesClassifier if classes else ensemble.ExtraTreesRegressor
        options = {"min_samples_leaf": choices["leaf"], "max_features": choices["share"], "n_estimators": 150}
        return kind(**options, random_state=seed, **({"class_weight": weight} if classes else {}))
    if family == "neighbors":
        kind = neighbors.KNeighborsClassifier if classes else neighbors.KNeighborsRegressor
        return kind(choices["neighbors"], weights="distance")
    if family == "network":
        kind = neural_network.MLPClassifier if classes else neural_network.MLPRegressor
        return kind(
            hidden_layer_sizes=(64,),
            alpha=1 / strength,
            max_iter=60,
            early_stopping=True,
            n_iter_no_change=6,
            random_state=seed,
        )
    if classes:
        return linear_model.LogisticRegression(C=strength, class_weight=weight, max_iter=300, random_state=seed)
    return linear_model.Ridge(alpha=1 / strength)
