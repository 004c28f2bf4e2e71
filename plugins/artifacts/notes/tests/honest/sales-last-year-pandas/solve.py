import os
import numpy as np
import pandas as pd

path = os.environ["MLEREDUX_DATA_DIR"]
tr = pd.read_csv(f"{path}/train.csv", parse_dates=["date"])
te = pd.read_csv(f"{path}/test.csv", parse_dates=["date"])
df = pd.concat([tr, te], ignore_index=True).sort_values("date")
df["dow"], df["month"] = df.date.dt.dayofweek, df.date.dt.month
df["t"] = (df.date - df.date.min()).dt.days
X = np.column_stack([np.ones(len(df)), df.t, *(df.dow == k for k in range(6))]).astype(float)
k = df.sold.notna().to_numpy()
beta, *_ = np.linalg.lstsq(X[k], df.sold[k], rcond=None)
df["sold"] = X @ beta
out = df[~k][["date", "sold"]]
out.to_csv("submission.csv", index=False, date_format="%Y-%m-%d")
