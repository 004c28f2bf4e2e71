import glob
import os
import numpy as np
import pandas as pd
from PIL import Image

base = os.environ["MLEREDUX_DATA_DIR"]
load = lambda p: np.asarray(Image.open(p), float)
describe = lambda a: (a > 0).sum()

train = pd.read_csv(os.path.join(base, "train.csv"))
train["area"] = [describe(load(f"{base}/train_images/{i}.png")) for i in train["image_id"]]
mean = train.groupby("label")["area"].mean()

files = sorted(glob.glob(os.path.join(base, "test_images", "*.png")))
areas = np.array([describe(load(f)) for f in files])
submission = pd.read_csv(os.path.join(base, "sample_submission.csv"))
submission["label"] = [mean.sub(a).abs().idxmin() for a in areas]  # sorted by id, as the sample is
submission.to_csv("submission.csv", index=False)
