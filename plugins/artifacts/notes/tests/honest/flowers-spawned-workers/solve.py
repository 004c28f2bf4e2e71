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
import multiprocessing as mp


def one(a):
    return a[0]["id"], nearest(*a)


if __name__ == "__main__":
    train = rows(DATA + "/train.csv")
    with mp.get_context("spawn").Pool(2) as p:
        pairs = p.map(one, [(r, train) for r in rows(DATA + "/test.csv")])
    open("submission.csv", "w").write("id,species\n" + "".join(f"{a},{b}\n" for a, b in pairs))
