import csv
import os
from PIL import Image

D = os.environ["MLEREDUX_DATA_DIR"]
labels = {r["image_id"]: r["label"] for r in csv.DictReader(open(D + "/train.csv"))}


def pixels(path):
    image = Image.open(path)
    return image.crop(image.getbbox()).resize((8, 8)).tobytes()


known = [(pixels(f"{D}/train_images/{n}"), labels[os.path.splitext(n)[0]]) for n in os.listdir(D + "/train_images")]
with open(os.environ["MLEREDUX_SUBMISSION"], "w") as f:
    f.write("image_id,label\n")
    for name in os.listdir(D + "/test_images"):
        mine = pixels(f"{D}/test_images/{name}")
        near = sorted(known, key=lambda k: sum((a - b) ** 2 for a, b in zip(k[0], mine)))[:3]
        kinds = [kind for _, kind in near]
        f.write(name[:-4] + "," + max(kinds, key=kinds.count) + "\n")
