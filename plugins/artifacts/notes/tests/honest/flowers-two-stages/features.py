import os
import sys
import pandas as pd

data, work = os.environ["MLEREDUX_DATA_DIR"], sys.argv[1]
for part in ("train", "test"):
    df = pd.read_csv(f"{data}/{part}.csv")
    df["ratio"] = df.petal / (df.sepal.abs() + 1)
    df = df.join(pd.get_dummies(df.colour, dtype=float)).drop(columns="colour")
    df.to_csv(f"{work}/{part}_features.csv", index=False)
