import csv, os


def rows(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def nearest(row, train):
    return min(train, key=lambda r: sum((float(r[k]) - float(row[k])) ** 2 for k in ("petal", "sepal")))["species"]


def save(test, train, path="submission.csv"):
    with open(path, "w", newline="") as f:
        csv.writer(f).writerows([("id", "species"), *((r["id"], nearest(r, train)) for r in test)])


DATA = os.environ["MLEREDUX_DATA_DIR"]
