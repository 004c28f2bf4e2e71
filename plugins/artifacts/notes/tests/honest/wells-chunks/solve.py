import os
import numpy as np
import pandas as pd

data = os.environ["MLEREDUX_DATA_DIR"]
cols, targets = ["depth", "salt", "iron"], ["flow", "heat"]
A, B = np.zeros((4, 4)), np.zeros((4, 2))
for chunk in pd.read_csv(f"{data}/train.csv", chunksize=32):
    x = np.c_[chunk[cols], np.ones(len(chunk))]
    A += x.T @ x
    B += x.T @ chunk[targets].to_numpy()
W = np.linalg.solve(A, B)
first = True
for chunk in pd.read_csv(f"{data}/test.csv", chunksize=32):
    chunk[targets] = np.c_[chunk[cols], np.ones(len(chunk))] @ W
    chunk[["well", *targets]].to_csv("submission.csv", mode="w" if first else "a", header=first, index=False)
    first = False
