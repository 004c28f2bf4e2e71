import glob
import os
import numpy as np
import pandas as pd
from PIL import Image

base = os.environ["MLEREDUX_DATA_DIR"]
load = lambda p: np.asarray(Image.open(p), float).ravel()
train = pd.read_csv(os.path.join(base, "train.csv"))
X = np.stack([load(f"{base}/train_images/{i}.png") for i in train["image_id"]])
files = sorted(glob.glob(os.path.join(base, "test_images", "*.png")))
T = np.stack([load(f) for f in files])

distance = ((T[:, None] - X[None]) ** 2).sum(-1)
nearest = distance.argsort(axis=1)[:, :3]
submission = pd.read_csv(os.path.join(base, "sample_submission.csv"))
votes = (train["label"].to_numpy() == "square")[nearest].mean(1)
submission["label"] = np.where(votes > 0.5, "square", "disc")  # sorted by id, as the sample is
submission.to_csv("submission.csv", index=False)
