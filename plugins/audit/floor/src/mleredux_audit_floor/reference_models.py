"""Submissions of reference models on a table, from the weakest to the most careful one."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux.errors import NotApplicable
from mleredux.plugin.task import Task

if TYPE_CHECKING:
    import pandas as pd

PANEL = ("constant", "stump", "neighbors", "linear", "forest", "careful kernel", "careful boosting", "careful linear")
"""The models, in the order of their ability on generated tables."""
GOOD = PANEL[-3:]
"""Three different models that drop leaks, encode categories and mark missing values."""
_LEAK = 0.92
"""Minimum correlation with the target at which careful models regard a column as a leak."""


def write_predictions(task: Task, public: Path, folder: Path) -> dict[str, Path]:
    """Fit each model on `train.csv`, and write its predictions for `test.csv` as a submission.

    Raises:
        NotApplicable: The task does not consist of a training and a test table with a target.
    """
    import pandas as pd

    form, sample = task.submission, public / str(task.submission.sample)
    if not all((public / name).is_file() for name in ("train.csv", "test.csv")) or not sample.is_file():
        raise NotApplicable(
            f"{task.id} has no reference models.", hint="Choose a task with train.csv, test.csv and a sample."
        )
    train, test, expected = (pd.read_csv(path) for path in (public / "train.csv", public / "test.csv", sample))
    outputs = [str(name) for name in expected if name not in form.id_columns]
    target = next((name for name in train if name not in test), None)
    if target is None:
        raise NotApplicable(f"The training table of {task.id} has no column that its test table lacks.")
    features = [str(name) for name in test if name not in form.id_columns]
    written = {"constant": sample}
    for name in PANEL[1:]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = _predict(name, train[features], train[target], test[features], outputs, expected)
        written[name] = folder / f"{name}.csv"
        pd.DataFrame({**{key: expected[key] for key in form.id_columns}, **predicted}).to_csv(
            written[name], index=False
        )
    return written


def _predict(
    name: str, train: pd.DataFrame, target: pd.Series[Any], test: pd.DataFrame, outputs: list[str], sample: pd.DataFrame
) -> dict[str, Any]:
    numeric = len(outputs) == 1 and target.nunique() > 20
    if name in GOOD:
        codes = target if numeric else target.astype("category").cat.codes
        shares = train.select_dtypes("number").corrwith(codes, method="spearman").abs()
        leaks = [column for column in shares.index if shares[column] > (_LEAK if numeric else 0.8)]
        train, test = train.drop(columns=leaks), test.drop(columns=leaks)
    model = _pipeline(name, numeric, train)
    model.fit(train, target)
    if numeric:
        return {outputs[0]: model.predict(test)}
    labels = [str(label) for label in model.classes_]
    if len(outputs) == 1 and sample[outputs[0]].astype(str).isin(labels).all():
        return {outputs[0]: model.predict(test)}
    shares = model.predict_proba(test)
    if len(outputs) == 1:
        return {outputs[0]: shares[:, -1]}
    return {
        output: shares[:, next(i for i, label in enumerate(labels) if output.endswith(label))] for output in outputs
    }


def _pipeline(name: str, numeric: bool, train: pd.DataFrame) -> Any:
    from sklearn import ensemble, linear_model, neighbors, svm, tree
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

    models: dict[str, tuple[Any, Any]] = {
        "stump": (tree.DecisionTreeRegressor(max_depth=1), tree.DecisionTreeClassifier(max_depth=1)),
        "neighbors": (neighbors.KNeighborsRegressor(7), neighbors.KNeighborsClassifier(7)),
        "linear": (linear_model.LinearRegression(), linear_model.LogisticRegression(max_iter=300)),
        "forest": (
            ensemble.RandomForestRegressor(60, random_state=0), ensemble.RandomForestClassifier(60, random_state=0),
        ),
        "careful kernel": (svm.SVR(C=30), svm.SVC(C=2, probability=True, random_state=0)),
        "careful boosting": (
            ensemble.GradientBoostingRegressor(subsample=0.7, random_state=0),
            ensemble.GradientBoostingClassifier(n_estimators=60, subsample=0.7, random_state=0),
        ),
        "careful linear": (
            linear_model.RidgeCV([1, 3, 10, 30, 100]), linear_model.LogisticRegression(C=0.2, max_iter=300),
        ),
    }  # fmt: skip
    numbers = [SimpleImputer(strategy="median", add_indicator=name in GOOD), StandardScaler()]
    if name == "careful linear":
        numbers += [PolynomialFeatures(2, include_bias=False), StandardScaler()]
    steps = [(make_pipeline(*numbers), make_column_selector(dtype_include="number"))]
    if name in GOOD or name == "forest":
        encoder = make_pipeline(OneHotEncoder(handle_unknown="ignore", min_frequency=3))
        steps.append((encoder, make_column_selector(dtype_exclude="number")))
    return make_pipeline(make_column_transformer(*steps), models[name][0 if numeric else 1])
