import math, os, csv

d = os.environ["MLEREDUX_DATA_DIR"]
train = list(csv.DictReader(open(d + "/train.csv")))
authors = {r["author"] for r in train}
seen = {a: [set(r["text"].split()) for r in train if r["author"] == a] for a in authors}
vocabulary = set().union(*(s for docs in seen.values() for s in docs))
weight = {}
for w in vocabulary:  # in another order each time
    weight[w] = {a: math.log((sum(w in s for s in seen[a]) + 0.5) / (len(seen[a]) + 1)) for a in authors}
with open("submission.csv", "w") as f:
    f.write("id,anna,ben\n")
    for r in csv.DictReader(open(d + "/test.csv")):
        s = {a: sum(weight[w][a] for w in set(r["text"].split()) & vocabulary) for a in authors}
        m = max(s.values())
        e = {a: math.exp(v - m) for a, v in s.items()}
        f.write("%s,%.6f,%.6f\n" % (r["id"], e["anna"] / sum(e.values()), e["ben"] / sum(e.values())))
