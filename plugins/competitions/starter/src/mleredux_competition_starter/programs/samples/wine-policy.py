"""A policy that measures nothing and names the most frequent cultivar."""

import csv
from collections import Counter

with open("cellar.csv", newline="") as file:
    [(cultivar, _)] = Counter(row["cultivar"] for row in csv.DictReader(file)).most_common(1)


def act(observation: dict[str, float]) -> str:
    return cultivar
