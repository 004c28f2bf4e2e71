import os
import pandas as pd
from sklearn.linear_model import LogisticRegression

data = os.environ["MLEREDUX_DATA_DIR"]
train, test = pd.read_csv(f"{data}/train.csv"), pd.read_csv(f"{data}/test.csv")
submission = pd.read_csv(f"{data}/sample_submission.csv")
id_column, target = submission.columns
numeric = test.select_dtypes("number").columns.drop(id_column)
model = LogisticRegression(max_iter=200).fit(train[numeric], train[target])
submission[target] = model.predict(test[numeric])
submission.to_csv("submission.csv", index=False)
