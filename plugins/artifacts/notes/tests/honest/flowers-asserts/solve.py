import os
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier

root = os.environ["MLEREDUX_DATA_DIR"]
train, test, sample = (pd.read_csv(f"{root}/{n}.csv") for n in ("train", "test", "sample_submission"))
assert train.shape == (160, 5) and test.shape == (80, 4), (train.shape, test.shape)
assert test.id.is_unique and not set(test.id) & set(train.id)
assert list(sample.id) == list(test.id) and sample.species.nunique() == 1
assert set(train.species) == {"iris", "lily", "rose"} and train.notna().all().all()
heights = pd.read_csv(f"{root}/heights.csv").set_index("id").height
assert set(test.id) <= set(heights.index)
X, T = (df[["petal", "sepal"]].assign(h=df.id.map(heights)) for df in (train, test))
sample["species"] = KNeighborsClassifier(7).fit(X, train.species).predict(T)
sample.to_csv("submission.csv", index=False)
