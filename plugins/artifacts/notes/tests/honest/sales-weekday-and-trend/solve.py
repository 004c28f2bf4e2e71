import os
import numpy as np
import pandas as pd

root = os.environ["MLEREDUX_DATA_DIR"]
train = pd.read_csv(f"{root}/train.csv", parse_dates=["date"])
test = pd.read_csv(f"{root}/test.csv", parse_dates=["date"])
start = train["date"].min()


def design(df):
    t = (df["date"] - start).dt.days.to_numpy()
    return np.c_[t, np.eye(7)[df["date"].dt.dayofweek]]


w = np.linalg.lstsq(design(train), train["sold"], rcond=None)[0]
sub = pd.read_csv(f"{root}/sample_submission.csv")
sub["sold"] = design(test) @ w
sub.to_csv("submission.csv", index=False)
