import os
import shutil
import pandas as pd
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB

d = os.environ["MLEREDUX_DATA_DIR"]
shutil.copy(d + "/sample_submission.csv", "submission.csv")  # something, in case that time runs out
train, test = pd.read_csv(d + "/train.csv"), pd.read_csv(d + "/test.csv")
X, y = train[["petal", "sepal"]], train["species"]
proba = 0
for fit, _ in StratifiedKFold(5, shuffle=True).split(X, y):
    model = GaussianNB().fit(X.iloc[fit], y.iloc[fit])
    proba = proba + model.predict_proba(test[["petal", "sepal"]])
sub = pd.DataFrame({"id": test["id"], "species": model.classes_[proba.argmax(1)]})
sub.to_csv("submission.csv", index=False)
