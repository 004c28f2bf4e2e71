import csv
import os
import sqlite3

data = os.environ["MLEREDUX_DATA_DIR"]
db = sqlite3.connect("flowers.db")
for name in ("train", "test", "heights", "sample_submission"):
    with open(f"{data}/{name}.csv", newline="") as f:
        header, *rows = csv.reader(f)
        db.execute(f"CREATE TABLE {name} ({', '.join(header)})")
        rows = [[c if c[:1].isalpha() else float(c) for c in r] for r in rows]
        db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(header))})", rows)
db.execute("""CREATE VIEW centre AS SELECT species, avg(petal) p, avg(sepal) s, avg(height) h
              FROM train JOIN heights USING (id) GROUP BY species""")
found = db.execute("""
    SELECT id, kind, min((petal - p) * (petal - p) + (sepal - s) * (sepal - s) + (height - h) * (height - h))
    FROM sample_submission JOIN test USING (id) JOIN heights USING (id)
    CROSS JOIN (SELECT species AS kind, p, s, h FROM centre)
    GROUP BY id""")
with open("submission.csv", "w", newline="") as f:
    csv.writer(f).writerows([("id", "species"), *((int(key), kind) for key, kind, _ in found)])
