import os
import pathlib
from PIL import Image

data = pathlib.Path(os.environ["MLEREDUX_DATA_DIR"])


def bright(path):
    return sum(value > 0 for value in Image.open(path).tobytes())


classes = sorted(p.name for p in (data / "train").iterdir())
known = [(bright(f), c) for c in classes for f in (data / "train" / c).glob("*.png")]
with open("submission.csv", "w") as out:
    print("file,kind", file=out)
    for f in sorted((data / "test").iterdir()):
        near = [c for _, c in sorted(known, key=lambda k: abs(k[0] - bright(f)))[:7]]
        print(f.name, max(classes, key=near.count), sep=",", file=out)
