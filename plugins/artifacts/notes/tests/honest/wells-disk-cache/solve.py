import os
import pickle
import numpy as np
import pandas as pd

CACHE = "features.pkl"
root = os.environ["MLEREDUX_DATA_DIR"]


def features(df):
    x = df[["depth", "salt", "iron"]].to_numpy()
    return np.c_[x, x**2, np.ones(len(x))]


if os.path.exists(CACHE):
    train, test, X, Xt = pickle.load(open(CACHE, "rb"))
else:
    train, test = pd.read_csv(f"{root}/train.csv"), pd.read_csv(f"{root}/test.csv")
    X, Xt = features(train), features(test)
    pickle.dump((train, test, X, Xt), open(CACHE, "wb"))
pred = Xt @ np.linalg.lstsq(X, train[["flow", "heat"]].to_numpy(), rcond=None)[0]
pd.DataFrame({"well": test.well, "flow": pred[:, 0], "heat": pred[:, 1]}).to_csv("submission.csv", index=False)
