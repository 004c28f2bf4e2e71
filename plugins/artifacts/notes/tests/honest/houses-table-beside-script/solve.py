import os
from pathlib import Path
import numpy as np
import pandas as pd

streets = pd.read_csv(Path(__file__).parent / "streets.csv")  # from the land registry
data = os.environ["MLEREDUX_DATA_DIR"]
train = pd.read_csv(f"{data}/train.csv").merge(streets, on="street", how="left")
test = pd.read_csv(f"{data}/test.csv").merge(streets, on="street", how="left")
cols = ["area", "rooms", "noise", "garden"]
w = np.linalg.lstsq(np.c_[train[cols], np.ones(len(train))], train.price, rcond=None)[0]
test["price"] = np.c_[test[cols], np.ones(len(test))] @ w
test[["Id", "price"]].to_csv("submission.csv", index=False)
