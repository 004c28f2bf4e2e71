import numpy as np
import pandas as pd

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
pixels, digits = train.drop(columns=["id", "digit"]).to_numpy(), train["digit"].to_numpy()
held = np.arange(len(digits)) % 4 == 0


def predict(known, labels, images):
    means = np.stack([known[labels == digit].mean(axis=0) for digit in range(10)])
    return ((images[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)


print(f"validation metric: {(predict(pixels[~held], digits[~held], pixels[held]) == digits[held]).mean():.4f}")
predictions = predict(pixels, digits, test.drop(columns=["id"]).to_numpy())
pd.DataFrame({"id": test["id"], "digit": predictions}).to_csv("./working/submission.csv", index=False)
