import os
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor

path = os.environ["MLEREDUX_DATA_DIR"]
train = pd.read_csv(f"{path}/train.csv", index_col="well")
test = pd.read_csv(f"{path}/test.csv", index_col="well")
sample = pd.read_csv(f"{path}/sample_submission.csv", index_col="well")
for target in sample.columns:
    model = ExtraTreesRegressor(60, random_state=42).fit(train[test.columns], train[target])
    sample[target] = model.predict(test)
sample.to_csv("submission.csv")
