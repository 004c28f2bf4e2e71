import pandas as pd

train = pd.read_csv("data/trian.csv")
print(train.shape)
