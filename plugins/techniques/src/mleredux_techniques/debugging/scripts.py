"""Training scripts: blocks with variants, in which lines have a wrong form by kind of fault.

In a block, `right
that no form of a line is suspicious by itself; names of variables differ between scripts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques.debugging.mutations import unusual

SCRIPT, SUBMISSION, VALIDATION = "train.py", "submission.csv", "validation.json"

_HEAD = '''\
"""Choose a model by cross-validation, predict the test rows, and state the validation score."""

import json

import numpy as np
import pandas as pd
'''
_LOAD = (
    """\
train = pd.read_csv("train.csv")
test = pd.read_csv("test.csv")
features = [name for name in test.columns if name != ID]
""",
    """\
train = pd.read_csv("train.csv")
test = pd.read_csv("test.csv").sort_values(FEATURE)
features = [name for name in train.columns if name not in (ID, TARGET)]
""",
)
_FILL = """\
middle = train[features].median()
X = train[features].fillna(middle).to_numpy(dtype=float)
X_test = test[features].fillna(middle).to_numpy(dtype=float)
"""
_SCALE = (
    """\
mean, spread = X.mean(axis=0), X.std(axis=0) + 1e-9
X = (X - mean) / spread
X_test = (X_test - mean) / spread
""",
    """\
scaler = StandardScaler().fit(X)
X = scaler.transform(X)
X_test = scaler.transform(X_test)
""",
)
_LABELS = {
    True: "classes, y = np.unique(train[TARGET].astype(str), return_inverse=True)\n",
    False: "y = train[TARGET].to_numpy(dtype=float)\n",
}
_SHUFFLE = (
    """\
order = np.random.default_rng(SEED).permutation(len(X))
X, y = X[order], y[order]
""",
    """\
order = np.argsort(X[:, 0], kind="stable")
X = X[order]
y = y[order]
""",
)
_FOLDS = (
    ("fold = np.arange(len(X)) % FOLDS\n", "range(FOLDS)"),
    ("fold = np.arange(len(X)) % FOLDS + 1\n", "range(1, FOLDS + 1)"),
    ("fold = np.arange(len(X)) % FOLDS\n", "np.unique(fold)"),
)
_LOOP = """\
scores = {}
for name, model in candidates.items():
    held = np.zeros(SHAPE)
    for k in RIGHT:
        inside = fold == k
        model.fit(X[~inside], y[~inside])
        held[inside] = model.PREDICT(X[inside])
    scores[name] = METRIC
best = CHOOSE(scores, key=scores.get)
"""
_LAST = """\
model = candidates[best].fit(X, y)
submission = pd.DataFrame(model.PREDICT(X_test), columns=NAMES)
submission.insert(0, ID, test[ID].to_numpy())
submission.to_csv("submission.csv", index=False)
with open("validation.json", "w") as file:
    json.dump({"score": float(scores[best])}, file)
"""
_CANDIDATES = {
    True: {
        "linear": "LogisticRegression(max_iter=200)",
        "neighbors": "KNeighborsClassifier(15)",
        "tree": "DecisionTreeClassifier(random_state=SEED)",
        "constant": "DummyClassifier()",
    },
    False: {
        "linear": "Ridge(1.0)",
        "neighbors": "KNeighborsRegressor(15)",
        "tree": "DecisionTreeRegressor(random_state=SEED)",
        "constant": "DummyRegressor()",
    },
}
_IMPORTS = {
    True: """\
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
""",
    False: """\
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
""",
}
METRICS: dict[bool, dict[str, tuple[str, str]]] = {
    True: {
        "log_loss": ("-np.log(np.clip(held[np.arange(len(y)), y], 1e-6, 1)).mean()", "min"),
        "log_likelihood": ("np.log(np.clip(held[np.arange(len(y)), y], 1e-6, 1)).mean()", "max"),
        "accuracy": ("(held.argmax(axis=1) == y).mean()", "max"),
    },
    False: {
        "mae": ("np.abs(held - y).mean()", "min"),
        "rmse": ("np.sqrt(((held - y) ** 2).mean())", "min"),
        "r2": ("1 - ((held - y) ** 2).mean() / y.var()", "max"),
    },
}
"""Metrics by which scripts choose a model: formula, and whether the smallest or largest score is the best."""
_SYNONYMS = {
    "fold": ("fold", "part"),
    "inside": ("inside", "mask", "here"),
    "held": ("held", "oof"),
    "order": ("order", "rows"),
    "scores": ("scores", "results"),
    "k": ("k", "number"),
    "candidates": ("candidates", "models"),
}


@dataclass(frozen=True)
class Script:
    """A script without faults.

    Attributes:
        plain: Its lines in their usual form, of which faults are made.
        sound: The same with other forms of some lines.
        metric: That by which it validates.
    """

    plain: str
    sound: str
    metric: str

    def text(self, faults: Mapping[int, str] | None = None) -> str:
        """The script with faults: line number, from 1 → wrong line."""
        told = (faults or {}).get
        return "\n".join(told(number, line) for number, line in enumerate(self.sound.split("\n"), start=1))


def script(dataset: Dataset, style: int) -> Script:
    """The script of a style, for the columns of a dataset; equal styles give equal scripts."""
    rng = np.random.default_rng(style)
    classes = dataset.problem != "regression"

    def one(variants: tuple[str, ...]) -> str:
        return variants[int(rng.integers(len(variants)))]

    metric = one(tuple(METRICS[classes]))
    formula, choose = METRICS[classes][metric]
    folds, right = _FOLDS[int(rng.integers(len(_FOLDS)))]
    candidates = [f'    "{name}": {made},' for name, made in _CANDIDATES[classes].items()]
    listed = "\n".join(["candidates = {", *(candidates[place] for place in rng.permutation(len(candidates))), "}\n"])
    constants = f"SEED, FOLDS = {rng.integers(1, 100)}, {rng.integers(4, 7)}\n"
    constants += f"ID, TARGET = {dataset.ids[0]!r}, {dataset.target!r}\n"
    body = [constants, one(_LOAD), _FILL, one(_SCALE), _LABELS[classes], one(_SHUFFLE), folds, listed, _LOOP, _LAST]
    text = "\n".join([_HEAD + _IMPORTS[classes], *body])
    held = {
        "SHAPE": "(len(X), len(classes))" if classes else "len(X)",
        "RIGHT": right, "METRIC": formula, "CHOOSE": choose,
        "PREDICT": "predict_proba" if classes else "predict", "NAMES": "classes" if classes else '["prediction"]',
        "FEATURE": repr(dataset.features[int(rng.integers(len(dataset.features)))]),
    }  # fmt: skip
    text = _replaced(_replaced(text, held), {name: one(others) for name, others in _SYNONYMS.items()})
    return Script(text, unusual(text, rng), metric)


def _replaced(text: str, words: dict[str, str]) -> str:
    return re.sub(rf"\b({'|'.join(words)})\b", lambda found: words[found[1]], text)
