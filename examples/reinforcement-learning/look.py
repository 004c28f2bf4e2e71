"""A cell that inspects a training table: prints numbers that describe it, and the columns that tell most alone."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd

BINS = 10
data = Path(os.environ["MLEREDUX_DATA_DIR"])
task = json.loads((Path(os.environ["MLEREDUX_TASK_DIR"]) / "task.json").read_text())
train, test = pd.read_csv(data / "train.csv"), pd.read_csv(data / "test.csv")
columns = [name for name in test if name in train and name not in task["id_columns"]]
[target] = [name for name in train if name not in test]
numeric = train[target].dtype.kind == "f"
y = train[target].rank(pct=True).to_frame() if numeric else pd.get_dummies(train[target], dtype=float)
even = np.arange(len(train)) % 2 == 0


def skill(values):
    """R² in odd rows of the mean targets of a column's values, or its tenths, in even rows; 0 if it is worse."""
    if values.dtype.kind in "if" and values.nunique() > BINS:
        values = pd.qcut(values, BINS, labels=False, duplicates="drop")
    codes = values.astype(str)
    predicted = y[even].groupby(codes[even]).mean().reindex(codes[~even]).fillna(y[even].mean()).to_numpy()
    held = y[~even].to_numpy()
    return max(0.0, 1 - ((held - predicted) ** 2).sum() / ((held - y[even].mean().to_numpy()) ** 2).sum())


skills = {name: skill(train[name]) for name in columns}
order = sorted(columns, key=skills.get, reverse=True)
text = [name for name in columns if train[name].dtype.kind == "O"]
features = {
    "regression": float(numeric),
    "rows": np.log10(len(train)) - 3,
    "columns": np.log10(len(columns)) - 1,
    "text": len(text) / len(columns),
    "missing": float(train[columns].isna().mean().mean()),
    **{f"skill {place + 1}": skills[name] for place, name in enumerate(order[:4])},
}
print(json.dumps({"features": {name: round(float(value), 4) for name, value in features.items()}, "order": order[:3]}))
