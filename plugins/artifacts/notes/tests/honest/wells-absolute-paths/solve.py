import os.path
import sys
from pathlib import Path

import numpy as np

# In the container everything is at a fixed place; on my laptop it is not.
DATA = Path("/task/data") if os.path.exists("/task/data/train.csv") else Path(os.environ["MLEREDUX_DATA_DIR"])
OUT = Path("/output") if DATA == Path("/task/data") else Path(os.environ["MLEREDUX_OUTPUT_DIR"])


def load(name):
    lines = (DATA / name).read_text().splitlines()[1:]
    cells = [line.split(",") for line in lines]
    return [c[0] for c in cells], np.array([[float(x) for x in c[1:]] for c in cells])


_, train = load("train.csv")
ids, test = load("test.csv")
A = np.column_stack([train[:, :3], np.ones(len(train))])
W = np.linalg.lstsq(A, train[:, 3:], rcond=None)[0]
P = np.column_stack([test, np.ones(len(test))]) @ W
with open(OUT / "submission.csv", "w") as f:
    print("well,flow,heat", file=f)
    for i, (a, b) in zip(ids, P):
        print(f"{i},{a:.4f},{b:.4f}", file=f)
sys.exit(0)
