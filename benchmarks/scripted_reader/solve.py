"""Two models, chosen by validation; leaks, folds and names as they were noted before."""

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, TargetEncoder


def noted(name):
    path = Path(f"{name}.txt")
    return path.read_text() if path.exists() else ""


data = Path(os.environ["MLEREDUX_DATA_DIR"])
train, test, sample = (pd.read_csv(data / f"{name}.csv") for name in ("train", "test", "sample_submission"))
leaks, folds = re.findall("`([^`]+)`", noted("leaks")), noted("folds")
names = [name for name in re.findall("`([^`]+)`", noted("codes")) if name in test and name not in leaks]
key, targets = sample.columns[0], list(sample.columns[1:])
target = next(name for name in train if name not in test)
y = train[target].astype(str) if len(targets) > 1 or train[target].nunique() == 2 else train[target]
classes = y.dtype == object or not pd.api.types.is_numeric_dtype(y)
columns = [name for name in test if name not in (key, *leaks)]
texts = [name for name in columns if not pd.api.types.is_numeric_dtype(train[name]) and name not in names]
x, asked = (table[columns].assign(**{n: table[n].astype(str) for n in (*names, *texts)}) for table in (train, test))

split = list(KFold(4, shuffle=True, random_state=0).split(x))
if folds:
    column = re.findall("=[`']([^`']+)[`']", folds)[0]
    if "Group" in folds:
        mark = re.findall(r"before the first '([^']+)'", folds)
        groups = train[column].astype(str)
        split = list(GroupKFold(4).split(x, y, groups.str.partition(mark[0])[0] if mark else groups))
    else:
        order = np.argsort(train[column].to_numpy(), kind="stable")
        split = [(order[a], order[b]) for a, b in TimeSeriesSplit(4).split(order)]

boosting, trees = (
    (HistGradientBoostingClassifier, ExtraTreesClassifier)
    if classes
    else (HistGradientBoostingRegressor, ExtraTreesRegressor)
)
found = {}
for model in (boosting(max_iter=80, random_state=0), trees(100, min_samples_leaf=2, random_state=0)):
    unknown = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    kind = "auto" if classes else "continuous"
    shaped = make_column_transformer(
        (TargetEncoder(target_type=kind), names), (unknown, texts), remainder="passthrough"
    )
    if isinstance(model, trees):
        x, asked = (table.fillna(dict.fromkeys(x.select_dtypes("number"), -999.0)) for table in (x, asked))
    pipe, losses = make_pipeline(shaped, model), []
    for rows, held in split:
        pipe.fit(x.iloc[rows], y.iloc[rows])
        if classes:
            losses.append(log_loss(y.iloc[held], pipe.predict_proba(x.iloc[held]), labels=pipe.classes_))
        else:
            losses.append(mean_squared_error(y.iloc[held], pipe.predict(x.iloc[held])) ** 0.5)
    found[type(model).__name__] = (float(np.mean(losses)), pipe.fit(x, y))
print(f"leaks {leaks}, folds {folds.strip() or 'random'}, names {names}")
loss, pipe = min(found.values(), key=lambda one: one[0])
print(f"validation loss: {loss:.5f}")
if classes:
    told = pipe.predict_proba(asked)
    one = len(targets) == 1
    known = {name: place for place, label in enumerate(pipe.classes_) for name in (label, f"{target}_{label}")}
    places = [known[name] for name in targets] if targets[1:] else [1]
    sample[targets] = told[:, places]
else:
    sample[targets[0]] = pipe.predict(asked)
assert sample[key].equals(test[key])
sample.to_csv(os.environ["MLEREDUX_SUBMISSION"], index=False)
