import os
import random
import pandas as pd

d = os.environ["MLEREDUX_DATA_DIR"]
train, test = pd.read_csv(d + "/train.csv"), pd.read_csv(d + "/test.csv")
rows = list(train[["petal", "sepal", "species"]].itertuples(index=False))
votes = [[] for _ in range(len(test))]
for _ in range(25):  # bagging
    bag = random.choices(rows, k=80)
    for place, (p, s) in enumerate(test[["petal", "sepal"]].itertuples(index=False)):
        votes[place].append(min(bag, key=lambda r: (r.petal - p) ** 2 + (r.sepal - s) ** 2).species)
sample = pd.read_csv(d + "/sample_submission.csv")
sample["species"] = [max(set(v), key=v.count) for v in votes]
sample.to_csv("submission.csv", index=False)
