import os
import pathlib
from PIL import Image

data = pathlib.Path(os.environ["MLEREDUX_DATA_DIR"])


def pixels(path):
    image = Image.open(path)
    return image.crop(image.getbbox()).resize((8, 8)).tobytes()


classes = sorted(p.name for p in (data / "train").iterdir())
known = [(pixels(f), c) for c in classes for f in (data / "train" / c).glob("*.png")]
with open("submission.csv", "w") as out:
    print("file,kind", file=out)
    for f in sorted((data / "test").iterdir()):
        mine = pixels(f)
        near = [c for _, c in sorted(known, key=lambda k: sum(abs(a - b) for a, b in zip(k[0], mine)))[:3]]
        print(f.name, max(classes, key=near.count), sep=",", file=out)
