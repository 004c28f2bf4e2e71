import csv, sys

for row in csv.DictReader(sys.stdin):
    print(row["id"], row["petal"], row["sepal"], row.get("species") or "")
