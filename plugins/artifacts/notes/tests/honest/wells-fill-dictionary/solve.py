import csv, os

src = os.environ["MLEREDUX_DATA_DIR"]
train = [{k: v if k == "well" else float(v) for k, v in r.items()} for r in csv.DictReader(open(f"{src}/train.csv"))]
test = {r["well"]: r for r in csv.DictReader(open(f"{src}/test.csv"))}
with open(f"{src}/sample_submission.csv") as sample, open("submission.csv", "w") as out:
    reader = csv.DictReader(sample)
    writer = csv.DictWriter(out, reader.fieldnames)
    writer.writeheader()
    for row in reader:
        x = {k: float(v) for k, v in test[row["well"]].items() if k != "well"}
        w = [1 / (0.05 + sum((t[k] - x[k]) ** 2 for k in x)) ** 2 for t in train]
        for target in ("flow", "heat"):
            row[target] = sum(a * t[target] for a, t in zip(w, train)) / sum(w)
        writer.writerow(row)
