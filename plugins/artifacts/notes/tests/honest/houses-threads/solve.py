import csv
import os
from concurrent.futures import ThreadPoolExecutor, as_completed

DATA = os.environ["MLEREDUX_DATA_DIR"]
train = list(csv.DictReader(open(f"{DATA}/train.csv")))
test = list(csv.DictReader(open(f"{DATA}/test.csv")))


def predict(row):
    def far(r):
        return (
            abs(float(r["area"]) - float(row["area"]))
            + 8 * abs(int(r["rooms"]) - int(row["rooms"]))
            + 40 * (r["street"] != row["street"])
        )

    near = sorted(train, key=far)[:5]
    return row["Id"], sum(float(r["price"]) + 2 * (float(row["area"]) - float(r["area"])) for r in near) / 5


with ThreadPoolExecutor(4) as pool, open("submission.csv", "w") as out:
    out.write("Id,price\n")
    for done in as_completed([pool.submit(predict, row) for row in test]):  # first come, first written
        out.write("{},{:.2f}\n".format(*done.result()))
