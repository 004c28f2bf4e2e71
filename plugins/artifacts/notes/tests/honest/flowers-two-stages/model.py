import sys
import pandas as pd

work = sys.argv[1]
train, test = pd.read_csv(f"{work}/train_features.csv"), pd.read_csv(f"{work}/test_features.csv")
cols = [c for c in test.columns if c != "id"]
mean, std = train[cols].mean(), train[cols].std()
z, zt = (train[cols] - mean) / std, (test[cols] - mean) / std
votes = []
for _, row in zt.iterrows():
    nearest = ((z - row) ** 2).sum(axis=1).nsmallest(9).index
    votes.append(train.species[nearest].mode()[0])
pd.DataFrame({"id": test.id, "species": votes}).to_csv(f"{work}/submission.csv", index=False)
