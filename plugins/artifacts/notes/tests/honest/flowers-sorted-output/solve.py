import os
import pandas as pd

d = os.environ["MLEREDUX_DATA_DIR"]
train = pd.read_csv(d + "/train.csv").sort_values("petal")
test = pd.read_csv(d + "/test.csv").sort_values(["colour", "petal"])
centres = train.groupby("species")[["petal", "sepal"]].median()
test["species"] = [((centres - [p, s]) ** 2).sum(axis=1).idxmin() for p, s in zip(test.petal, test.sepal)]
test.sort_values("id")[["id", "species"]].to_csv("submission.csv", index=False)
