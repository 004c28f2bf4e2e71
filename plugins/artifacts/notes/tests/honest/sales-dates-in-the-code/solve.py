import csv, datetime, os
import numpy as np

data = os.environ["MLEREDUX_DATA_DIR"]
train, test = (list(csv.DictReader(open(f"{data}/{part}.csv"))) for part in ("train", "test"))
START = datetime.date(2018, 1, 1)


def inputs(row):
    day = datetime.date.fromisoformat(row["date"])
    return [min(max((day - START).days, 0), 1000)] + [float(day.weekday() == number) for number in range(7)]


recent = [row for row in train if row["date"] >= "2018-03-01"] or train
weights = np.linalg.lstsq(np.array([inputs(r) for r in recent]), np.array([float(r["sold"]) for r in recent]))[0]
with open("submission.csv", "w") as file:
    print("date,sold", file=file)
    for row in test:
        print(row["date"], round(float(np.dot(inputs(row), weights)), 2), sep=",", file=file)
