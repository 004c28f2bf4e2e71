import collections
import csv
import json
import math
import os
import pathlib

here = pathlib.Path(__file__).resolve().parent
cache = (here if os.access(here, os.W_OK) else pathlib.Path.cwd()) / "cache" / "tokens.json"
data = pathlib.Path(os.environ["MLEREDUX_DATA_DIR"])


def rows(name):
    with open(data / name, newline="") as f:
        return list(csv.DictReader(f))


if cache.exists():
    tokens = json.loads(cache.read_text())
else:
    tokens = {
        name: [r["text"].lower().replace(",", "").split() for r in rows(name)] for name in ("train.csv", "test.csv")
    }
    cache.parent.mkdir(exist_ok=True)
    cache.write_text(json.dumps(tokens))

counts = collections.defaultdict(collections.Counter)
for r, words in zip(rows("train.csv"), tokens["train.csv"]):
    counts[r["author"]].update(words)
vocabulary = set().union(*counts.values())


def score(author, words):
    total = sum(counts[author].values()) + len(vocabulary)
    return sum(math.log((counts[author][w] + 1) / total) for w in words)


with open("submission.csv", "w", newline="") as f:
    out = csv.writer(f)
    out.writerow(["id", "anna", "ben"])
    for r, words in zip(rows("test.csv"), tokens["test.csv"]):
        p = 1 / (1 + math.exp(score("ben", words) - score("anna", words)))
        out.writerow([r["id"], round(p, 5), round(1 - p, 5)])
