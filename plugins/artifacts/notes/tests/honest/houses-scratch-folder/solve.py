import csv
import os
import tempfile

tmp = tempfile.mkdtemp()
data = os.environ["MLEREDUX_DATA_DIR"]
os.chdir(tmp)
with open(data + "/train.csv") as f, open("by_street.csv", "w") as g:
    g.writelines(sorted(f.readlines()[1:]))
rows = [r for r in csv.reader(open("by_street.csv"))]
test = list(csv.DictReader(open(data + "/test.csv")))
with open(os.environ["MLEREDUX_OUTPUT_DIR"] + "/submission.csv", "w") as f:
    print("Id,price", file=f)
    for t in test:
        same = [r for r in rows if r[3] == t["street"]]
        near = sorted(same, key=lambda r: abs(float(r[1]) - float(t["area"])))[:12]
        slope = (
            sum((float(r[4]) + 15 * (int(t["rooms"]) - int(r[2])) + 2 * (float(t["area"]) - float(r[1]))) for r in near)
            / 12
        )
        print(t["Id"], slope, sep=",", file=f)
