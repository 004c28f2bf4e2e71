import os
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

d = os.environ["MLEREDUX_DATA_DIR"]
df = pd.concat([pd.read_csv(f"{d}/train.csv"), pd.read_csv(f"{d}/test.csv")], keys=["train", "test"])
df["colour"] = df.colour.astype("category").cat.codes
X = df[["petal", "sepal", "colour"]]
known = df.species.notna()
y = df.species.copy()
for turn in range(3):
    model = RandomForestClassifier(100, min_samples_leaf=3).fit(X[y.notna()], y[y.notna()])
    chances = model.predict_proba(X)
    sure = (chances.max(1) > 0.95) & ~known
    y[sure] = model.classes_[chances.argmax(1)][sure]
df["species"] = np.where(known, df.species, model.predict(X))
df.loc["test"][["id", "species"]].to_csv("submission.csv", index=False)
