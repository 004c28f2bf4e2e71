import pandas as pd

train = pd.read_csv("/task/data/train.csv")
sample = pd.read_csv("/task/data/sample_submission.csv")
target = sample.columns[-1]
sample[target] = train[target].mode()[0]
sample.to_csv("/output/submission.csv", index=False)
print("validation metric:", (train[target] == train[target].mode()[0]).mean())
