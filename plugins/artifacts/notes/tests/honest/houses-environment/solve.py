import os
import numpy as np
import pandas as pd

data_dir, target_file = os.environ["MLEREDUX_DATA_DIR"], os.environ["MLEREDUX_SUBMISSION"]
train = pd.read_csv(os.path.join(data_dir, "train.csv"))
test = pd.read_csv(os.path.join(data_dir, "test.csv"))
both = (
    pd.get_dummies(pd.concat([train.drop(columns="price"), test]), columns=["street"]).drop(columns="Id").astype(float)
)
X, X_test = both.iloc[: len(train)].to_numpy(), both.iloc[len(train) :].to_numpy()
w, *_ = np.linalg.lstsq(np.c_[X, np.ones(len(X))], train["price"], rcond=None)
test["price"] = np.c_[X_test, np.ones(len(X_test))] @ w
test[["Id", "price"]].to_csv(target_file, index=False)
