import os
from pathlib import Path
import numpy as np
import pandas as pd
from PIL import Image

ROOT = Path(os.environ["MLEREDUX_DATA_DIR"])


class Pictures:
    def __init__(self, table, folder):
        self.ids, self.folder = list(table.image_id), folder

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return np.asarray(Image.open(self.folder / f"{self.ids[i]}.png"), dtype=np.float32) / 255


def matrix(pictures):
    return np.stack([np.append(pictures[i].ravel(), 1.0) for i in range(len(pictures))])


train, sample = pd.read_csv(ROOT / "train.csv"), pd.read_csv(ROOT / "sample_submission.csv")
X, y = matrix(Pictures(train, ROOT / "train_images")), (train.label == "square").to_numpy() * 2.0 - 1
w = np.linalg.solve(X.T @ X + 2 * np.eye(X.shape[1]), X.T @ y)
sample["label"] = np.where(matrix(Pictures(sample, ROOT / "test_images")) @ w > 0, "square", "disc")
sample.to_csv("submission.csv", index=False)
