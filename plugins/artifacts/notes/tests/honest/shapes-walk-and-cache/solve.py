import os
import numpy as np
import pandas as pd
from PIL import Image

DATA = os.environ["MLEREDUX_DATA_DIR"]
CACHE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "features.npz")


def features():
    if os.path.exists(CACHE):
        return dict(np.load(CACHE))
    found = {}
    for folder, _, names in os.walk(DATA):
        for name in names:
            if name.endswith(".png"):
                pixels = np.asarray(Image.open(os.path.join(folder, name))) > 0
                rows, columns = pixels.any(1).sum(), pixels.any(0).sum()
                found[os.path.splitext(name)[0]] = np.array([pixels.sum() / max(rows * columns, 1), rows])
    try:
        np.savez(CACHE, **found)
    except OSError as error:
        print("no cache:", error)
    return found


found = features()
train = pd.read_csv(f"{DATA}/train.csv")
sub = pd.read_csv(f"{DATA}/sample_submission.csv")
full = {kind: np.mean([found[i][0] for i in part.image_id]) for kind, part in train.groupby("label")}
sub["label"] = [min(full, key=lambda k: abs(full[k] - found[i][0])) for i in sub.image_id]
sub.to_csv("submission.csv", index=False)
