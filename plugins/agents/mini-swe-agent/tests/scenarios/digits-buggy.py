import csv

with open("/task/data/train.csv") as file:
    labels = [row["label"] for row in csv.DictReader(file)]
print(f"validation metric: {labels.count('0') / len(labels):.4f}")
