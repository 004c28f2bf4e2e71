"""Bike rentals per hour: a season of realistic synthetic data, split by time."""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from mleredux import Competition, Metric, Submission, Thresholds

HERE = Path(__file__).parent
DAYS = 60
HELD_OUT_DAYS = 15
SKIES = ("clear", "cloudy", "rain")


def fetch(raw: Path) -> None:
    """Create the raw table with one row per hour."""
    generator = random.Random("bike-hours")
    rows: list[list[Any]] = []
    for day in range(DAYS):
        sky = generator.choices(SKIES, weights=(5, 3, 2))[0]
        for hour in range(24):
            temperature = 15 + 8 * math.sin(math.pi * (hour - 6) / 12) + day / 10 + generator.gauss(0, 2)
            rows.append([day, hour, day % 7, sky, round(temperature, 1), bikes(generator, day, hour, sky, temperature)])
    write(raw / "hours.csv", ["day", "hour", "weekday", "sky", "temperature", "bikes"], rows)


def bikes(generator: random.Random, day: int, hour: int, sky: str, temperature: float) -> int:
    """Return the number of bikes: two rush hours on working days, one peak at weekends, fewer in rain and cold."""
    if day % 7 < 5:
        demand = 120 * math.exp(-((hour - 8) ** 2) / 4) + 150 * math.exp(-((hour - 17.5) ** 2) / 6) + 20
    else:
        demand = 110 * math.exp(-((hour - 14) ** 2) / 18) + 15
    demand *= {"clear": 1.0, "cloudy": 0.85, "rain": 0.4}[sky] * min(1.3, max(0.3, temperature / 20))
    return max(0, round(generator.gauss(demand, 4 + demand / 12)))


def prepare(raw: Path, public: Path, private: Path, *, days: int = DAYS - HELD_OUT_DAYS) -> None:
    """Hold out the last days, so that agents can't see the future.

    Args:
        raw: Raw files.
        public: The files that the agent may see.
        private: The answers.
        days: Number of training days before the held-out days.
    """
    with (raw / "hours.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    numbered = [[str(number), *row] for number, row in enumerate(rows)]
    first = DAYS - HELD_OUT_DAYS
    train = [row for row in numbered if first - days <= int(row[1]) < first]
    test = [row for row in numbered if int(row[1]) >= first]
    write(public / "train.csv", ["id", *header], train)
    write(public / "test.csv", ["id", *header[:-1]], [row[:-1] for row in test])
    write(public / "sample_submission.csv", ["id", "bikes"], [[row[0], "50"] for row in test])
    write(private / "answers.csv", ["id", "bikes"], [[row[0], row[-1]] for row in test])


def write(path: Path, header: list[str], rows: Iterable[list[Any]]) -> None:
    """Write a CSV with Unix line endings."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def one_week(base: Competition) -> Competition:
    """Return the variant `bike-hours+week`, with a single week of training data."""
    return base.model_copy(
        update={
            "id": f"{base.id}+week",
            "title": f"{base.title}, from one week",
            "prepare": partial(prepare, days=7),
            "raw_id": base.id,
            "variants": {},
        }
    )


task = Competition(
    id="bike-hours",
    version="1",
    title="Bike rentals per hour",
    description=HERE / "description.md",
    description_obfuscated=HERE / "description_obfuscated.md",
    fetch=fetch,
    prepare=prepare,
    submission=Submission(id_columns=("id",), target_columns=("bikes",)),
    metric=Metric(grader="rmse"),
    direction="minimize",
    leaderboard=HERE / "leaderboard.csv",
    # Kaggle's rule on that leaderboard; its script prints them.
    thresholds=Thresholds(gold=12.02928, silver=12.93195, bronze=22.28813, median=26.71064),
    category="Tabular",
    complexity="low",
    sets=("examples",),
    tags=("regression", "time-split", "generated"),
    variants={"week": one_week},
)
