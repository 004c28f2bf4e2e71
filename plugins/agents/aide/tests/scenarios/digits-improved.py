import numpy as np
import pandas as pd

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
pixels, digits = train.drop(columns=["id", "digit"]).to_numpy(), train["digit"].to_numpy()
held = np.arange(len(digits)) % 4 == 0


def predict(known, labels, images):
    return np.array([labels[((known - image) ** 2).sum(axis=1).argmin()] for image in images])


print(f"validation metric: {(predict(pixels[~held], digits[~held], pixels[held]) == digits[held]).mean():.4f}")
predictions = predict(pixels, digits, test.drop(columns=["id"]).to_numpy())
pd.DataFrame({"id": test["id"], "digit": predictions}).to_csv("./working/submission.csv", index=False)
