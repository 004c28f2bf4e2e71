import os
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

INPUT = os.environ["MLEREDUX_DATA_DIR"]
train = pd.read_csv(INPUT + "/train.csv")
test = pd.read_csv(INPUT + "/test.csv")
features = ["petal", "sepal"]
clf = RandomForestClassifier(n_estimators=30, random_state=0)
clf.fit(train[features], train["species"])
out = pd.DataFrame({"id": test["id"], "species": clf.predict(test[features])})
out.to_csv("submission.csv", index=False)
