import os
import pandas as pd

d = os.environ["MLEREDUX_DATA_DIR"]
train = pd.read_csv(d + "/train.csv").merge(pd.read_csv(d + "/heights.csv"), on="id")
test = pd.read_csv(d + "/test.csv").merge(pd.read_csv(d + "/heights.csv"), on="id", how="left")
cols = ["petal", "sepal", "height"]
centres = train.groupby("species")[cols].mean()
dist = pd.DataFrame({k: ((test[cols] - c) ** 2).sum(axis=1) for k, c in centres.iterrows()})
test["species"] = dist.idxmin(axis=1)
test = test.sample(frac=1)  # whatever the order
sub = pd.read_csv(d + "/sample_submission.csv")[["id"]].merge(test[["id", "species"]], on="id")
sub.to_csv("submission.csv", index=False)
