import argparse
import json
import os
import pathlib
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--data", default=os.environ.get("MLEREDUX_DATA_DIR"))
parser.add_argument("--out", default="submission.csv")
parser.add_argument("--config", default=str(pathlib.Path(__file__).with_name("config.json")))
args = parser.parse_args()
config = json.load(open(args.config))
train = np.genfromtxt(f"{args.data}/train.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
test = np.genfromtxt(f"{args.data}/test.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
X, T = (np.column_stack([t[c] for c in config["features"]] + [np.ones(len(t))]) for t in (train, test))
ridge = X.T @ X + config["ridge"] * np.eye(X.shape[1])
P = T @ np.linalg.solve(ridge, X.T @ np.column_stack([train[t] for t in config["targets"]]))
with open(args.out, "w") as f:
    f.write("well," + ",".join(config["targets"]) + "\n")
    f.writelines(f"{key},{','.join(map(str, row))}\n" for key, row in zip(test["well"], P))
