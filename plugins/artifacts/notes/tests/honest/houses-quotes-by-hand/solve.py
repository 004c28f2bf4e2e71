# Ported from my R script: everything is read and written by hand.
import os
import re

DIR = os.environ["MLEREDUX_DATA_DIR"]


def read_table(name):
    rows = []
    for line in open(os.path.join(DIR, name), newline="").read().strip().split("\r\n"):
        rows.append([x.strip('"').replace('""', '"') for x in re.split(r',(?=(?:[^"]*"[^"]*")*[^"]*$)', line)])
    return rows[0], rows[1:]


head, train = read_table("train.csv")
_, test = read_table("test.csv")
assert open(os.path.join(DIR, "test.csv")).readline().startswith('"Id","area"')
# price ~ area, by street and number of rooms: slopes per group, shrunk to the whole
xs = [(float(r[1]), float(r[4]) - 15 * int(r[2])) for r in train]
mx, my = (sum(v) / len(xs) for v in zip(*xs))
slope = sum((a - mx) * (b - my) for a, b in xs) / sum((a - mx) ** 2 for a, _ in xs)
rest = {}
for r in train:
    rest.setdefault(r[3], []).append(float(r[4]) - 15 * int(r[2]) - slope * float(r[1]))
with open("submission.csv", "w") as f:
    f.write('"Id","price"\r\n')
    for r in test:
        group = rest[r[3]]
        f.write('"%s",%.3f\r\n' % (r[0], slope * float(r[1]) + 15 * int(r[2]) + sum(group) / len(group)))
