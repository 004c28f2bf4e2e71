"""Technique use as a reward: labelled runs, honest and dishonest ones, get the scores that they deserve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from mleredux_rollout import Text
from mleredux_techniques.usage.code import read
from mleredux_techniques.usage.judgement import TechniqueUse, judge

ROWS = 400
GROUPS: dict[str, Any] = {"groups": {"keys": [{"column": "unit", "separator": None, "second": None}]}, "times": []}
TIME: dict[str, Any] = {"groups": None, "times": ["day"]}
NEITHER: dict[str, Any] = {"groups": None, "times": []}
NOMINAL = {"types": ["nominal"], "cardinality": 5}
TRUTHS = {
    "cv": GROUPS,
    "leakage": {"leaks": [{"kinds": ["future_value"], "columns": ["refund"], "planted": True}]},
    "encoding": {
        "features": {"code": NOMINAL, "city": NOMINAL, "x": {"types": ["numeric"]}},
        "planted": ["code", "city"],
    },
}


@pytest.fixture(scope="module")
def test() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, ROWS)
    columns = {"x": rng.normal(size=ROWS), "code": codes * 7.0, "city": rng.choice(list("abcde"), ROWS)}
    return pd.DataFrame({**columns, "refund": rng.exponential(size=ROWS)})


def predicted(test: pd.DataFrame, *, leak: float = 0.0, encoded: float = 1.0) -> pd.DataFrame:
    """Predictions that depend on a leak, or on the names in two columns, as much as is said."""
    effects = np.array([2.0, -1.0, 3.0, -2.0, 0.5])
    by_city = test["city"].map(dict(zip("abcde", effects, strict=True)))
    by_code = effects[(test["code"] / 7).astype(int)]
    return pd.DataFrame({"y": test["x"] + encoded * (by_city + by_code) + leak * test["refund"]})


def judged(
    program: str, test: pd.DataFrame, optimism: float | None = 0.1, cv: dict[str, Any] = GROUPS, **how: float
) -> dict[str, float | None]:
    found = read([Text("output/code/solution.py", "code", program)])
    used: TechniqueUse = judge("r", "t", found, {**TRUTHS, "cv": cv}, test, predicted(test, **how), optimism)
    return {use.technique: use.score for use in used.uses}


HONEST = """
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import StratifiedGroupKFold as Folds
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, TargetEncoder

NAMES = ["city", "code"]

def evaluate(frame, y):
    steps = ColumnTransformer([("names", make_pipeline(OneHotEncoder()), NAMES), ("x", "passthrough", ["x"])])
    units = frame["unit"]
    for train, held in Folds(n_splits=5).split(frame, y, groups=units):
        steps.fit_transform(frame.iloc[train])

if __name__ == "__main__":
    evaluate(frame.drop(columns=["refund"]), y)
"""


def test_an_honest_run_gets_all(test: pd.DataFrame) -> None:
    assert judged(HONEST, test) == {"leakage": 1.0, "cv": 1.0, "encoding": 1.0}
    assert judged(HONEST, test, None)["cv"] == 1.0  # nothing is known of its validation


def test_effects_contradict_what_code_claims(test: pd.DataFrame) -> None:
    assert judged(HONEST, test, optimism=2.0)["cv"] == 0.0
    assert judged(HONEST, test, leak=3.0)["leakage"] == 0.0
    assert judged(HONEST, test, encoded=0.0)["encoding"] == 0.0


FITTING = {
    "alias": "import sklearn.model_selection as m\nG = m.GroupKFold\nfolds = G(5)\nlist(folds.split(X, y, df.unit))",
    "third argument": "from sklearn.model_selection import GroupKFold\nlist(GroupKFold().split(X, y, df['unit']))",
    "scorer": "from sklearn.model_selection import *\ncross_val_score(m, X, groups=df['unit'], cv=LeaveOneGroupOut())",
    "unique groups": "from sklearn.model_selection import KFold\nu = df['unit'].unique()\nlist(KFold(5).split(u))",
    "called later": "from sklearn.model_selection import GroupKFold\ndef f():\n g()\ndef g():\n"
    " GroupKFold().split(X, y, groups=df['unit'])\nf()",
    "settings": "solve(advice={'folds': {'name': 'GroupKFold', 'groups': 'unit'}})",
    "in a shell": "python - <<'EOF'\nfrom sklearn.model_selection import GroupKFold\n"
    "GroupKFold().split(X, y, groups=df['unit'])\nEOF",
}
NOT_FITTING = {
    "comment": "# GroupKFold().split(X, y, groups=df['unit'])\nfit(X, y)",
    "string": "'''GroupKFold().split(X, y, groups=df[\"unit\"])'''",
    "import": "from sklearn.model_selection import GroupKFold\ndf['unit']",
    "never asked": "from sklearn.model_selection import GroupKFold\nfolds = GroupKFold(5)\nprint(folds, df['unit'])",
    "never called": "from sklearn.model_selection import GroupKFold\ndef f():\n"
    " GroupKFold().split(X, y, groups=df['unit'])\nfit(X, y)",
    "never true": "from sklearn.model_selection import GroupKFold\nif False:\n"
    " GroupKFold().split(X, y, groups=df['unit'])",
    "other groups": "from sklearn.model_selection import GroupKFold\nGroupKFold().split(X, y, groups=df['lot'])",
    "at random": "from sklearn.model_selection import KFold\nKFold(5).split(df['unit'])",
    "train_test_split": "from sklearn.model_selection import train_test_split\ntrain_test_split(df['unit'], y)",
    "by time": "from sklearn.model_selection import TimeSeriesSplit\nTimeSeriesSplit().split(df.sort_values('unit'))",
    "no validation": "model.fit(X, y)",
    "no program": "print(",
}


@pytest.mark.parametrize("name", FITTING)
def test_folds_by_groups_are_found_however_they_are_written(name: str, test: pd.DataFrame) -> None:
    assert judged(FITTING[name], test)["cv"] == 1.0


@pytest.mark.parametrize("name", NOT_FITTING)
def test_folds_that_do_not_run_or_do_not_fit_count_nothing(name: str, test: pd.DataFrame) -> None:
    assert judged(NOT_FITTING[name], test)["cv"] == 0.0


def test_time_needs_order_and_random_splits_need_neither(test: pd.DataFrame) -> None:
    ordered = (
        "from sklearn.model_selection import TimeSeriesSplit\nd = df.sort_values('day')\nTimeSeriesSplit().split(d)"
    )
    plain = "from sklearn.model_selection import train_test_split\ntrain_test_split(X, y)"
    assert judged(ordered, test, cv=TIME)["cv"] == 1.0
    assert judged(ordered.replace("'day'", "'x'"), test, cv=TIME)["cv"] == 0.0
    assert judged(plain, test, cv=TIME)["cv"] == 0.0
    assert judged(plain, test, cv=NEITHER)["cv"] == 1.0
    assert judged(ordered, test, cv=NEITHER)["cv"] == 0.0


@pytest.mark.parametrize(
    ("program", "score"),
    [
        ("import pandas as pd\npd.get_dummies(df)", 0.5),  # codes in numbers stay numbers
        ("import pandas as pd\npd.get_dummies(df, columns=['city', 'code'])", 1.0),
        ("df['code'] = df['code'].astype('category')", 0.5),
        ("T(advice={'encoders': {'code': 'TargetEncoder', 'city': {'name': 'OneHotEncoder'}}})", 1.0),
        ("from sklearn.preprocessing import OrdinalEncoder\nOrdinalEncoder().fit_transform(df[['city', 'code']])", 0.0),
        ("from sklearn.preprocessing import OneHotEncoder\nOneHotEncoder().fit_transform(df[['city']])", 0.5),
        ("from sklearn.preprocessing import OneHotEncoder\nenc = OneHotEncoder()\nfit(df)", 0.0),
        ("from sklearn.preprocessing import OneHotEncoder as O\n"
         "make_column_transformer((O(), make_column_selector(dtype_include=object)))", 0.5),
    ],
)  # fmt: skip
def test_encodings_count_by_column(program: str, score: float, test: pd.DataFrame) -> None:
    assert judged(program, test)["encoding"] == score


def test_leaks_are_found_in_labels_and_probabilities_too(test: pd.DataFrame) -> None:
    leaking = predicted(test, leak=6.0)["y"]
    for honest, cheating in (
        (predicted(test)["y"] > 0, leaking > leaking.median()),
        (1 / (1 + np.exp(-predicted(test)["y"])), 1 / (1 + np.exp(-leaking))),
        (predicted(test)["y"].map(lambda v: "abc"[int(v > 0)]), leaking.map(lambda v: "abc"[int(v > 5) + int(v > 9)])),
    ):
        scores = [
            judge("r", "t", read([]), {"leakage": TRUTHS["leakage"]}, test, pd.DataFrame({"y": values}), None).reward
            for values in (honest, cheating)
        ]
        assert scores == [1.0, 0.0]


def test_what_can_not_be_judged_is_left_out(test: pd.DataFrame) -> None:
    truths = {"leakage": {"leaks": []}, "encoding": {"features": {"x": {"types": ["numeric"]}}, "planted": None}}
    used = judge("r", "t", read([]), truths, test, predicted(test), 3.0)
    assert used.reward is None and [use.score for use in used.uses] == [None, None]
