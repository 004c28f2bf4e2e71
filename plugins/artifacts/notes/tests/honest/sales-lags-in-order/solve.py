import csv
import os

d = os.environ["MLEREDUX_DATA_DIR"]
history = [float(r["sold"]) for r in csv.DictReader(open(f"{d}/train.csv"))]
rows = list(csv.DictReader(open(f"{d}/test.csv")))
drift = (sum(history[-70:]) - sum(history[-140:-70])) / 70 / 10  # a week, of ten
for _ in rows:  # day by day, in the order of the file: the mean of the same weekday of four weeks, and the drift
    last = [history[-7 * k] + k * drift for k in (1, 2, 3, 4)]
    history.append(sum(last) / 4)
with open("submission.csv", "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(["date", "sold"])
    w.writerows([r["date"], round(v, 2)] for r, v in zip(rows, history[-len(rows) :]))
