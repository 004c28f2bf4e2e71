import os
import sys

import pandas as pd
from sklearn.ensemble import RandomForestClassifier

settings = dict(item.split("=", 1) for item in sys.argv[1:] if "=" in item)
train, test, sample = (pd.read_csv(f"/home/data/{name}.csv") for name in ("train", "test", "sample_submission"))
target = sample.columns[-1]
features = [name for name in test.columns if name in train.columns and name != sample.columns[0]]
model = RandomForestClassifier(int(settings.get("model.trees", 10)), random_state=0)
sample[target] = model.fit(train[features], train[target]).predict(test[features])
sample.to_csv(os.path.join(os.environ["SUBMISSION_DIR"], "submission.csv"), index=False)
print("trained with", sys.prefix)
