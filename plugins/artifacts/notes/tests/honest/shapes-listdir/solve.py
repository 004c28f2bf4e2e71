import csv
import os
from PIL import Image

D = os.environ["MLEREDUX_DATA_DIR"]
labels = {r["image_id"]: r["label"] for r in csv.DictReader(open(D + "/train.csv"))}
lit = lambda f: sum(v > 0 for v in Image.open(f).tobytes())
sums, number = {}, {}
for name in os.listdir(D + "/train_images"):
    k = labels[os.path.splitext(name)[0]]
    sums[k] = sums.get(k, 0) + lit(f"{D}/train_images/{name}")
    number[k] = number.get(k, 0) + 1
with open(os.environ["MLEREDUX_SUBMISSION"], "w") as f:
    f.write("image_id,label\n")
    for name in os.listdir(D + "/test_images"):
        a = lit(f"{D}/test_images/{name}")
        f.write(name[:-4] + "," + min(sums, key=lambda k: abs(a - sums[k] / number[k])) + "\n")
