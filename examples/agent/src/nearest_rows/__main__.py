"""The agent: read the task, choose the number of neighbors, predict, and write the submission."""

from __future__ import annotations

import csv
import random
import shutil
import statistics
from collections import Counter
from pathlib import Path

from mleredux_agentkit import Task, Trajectory

Row = dict[str, str]
TASK = Task()
MANY_VALUES = 20
LEFT_OUT = 100


def read(path: Path) -> list[Row]:
    """Return a table as dictionaries of strings."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def is_number(text: str) -> bool:
    """Return whether a cell is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


class Space:
    """Represents rows as points: standardized numbers, and one-hot encoded texts."""

    def __init__(self, rows: list[Row], columns: list[str]) -> None:
        self.numbers: dict[str, tuple[float, float]] = {}
        self.texts: dict[str, list[str]] = {}
        for column in columns:
            values = [row[column] for row in rows]
            if all(map(is_number, values)):
                plain = list(map(float, values))
                self.numbers[column] = statistics.fmean(plain), statistics.pstdev(plain) or 1.0
            else:
                self.texts[column] = sorted(set(values))[:MANY_VALUES]

    def point(self, row: Row) -> list[float]:
        """Return the point of a row; missing numbers become the mean."""
        place = []
        for column, (mean, scale) in self.numbers.items():
            place.append((float(row[column]) - mean) / scale if is_number(row[column]) else 0.0)
        for column, words in self.texts.items():
            place += [float(row[column] == word) for word in words]
        return place


def nearest(point: list[float], points: list[list[float]], number: int, skip: int = -1) -> list[int]:
    """Return the indices of the nearest points, the nearest first."""
    distances = [
        (sum((a - b) ** 2 for a, b in zip(point, other, strict=True)), place)
        for place, other in enumerate(points)
        if place != skip
    ]
    return [place for _, place in sorted(distances)[:number]]


def combine(values: list[str], numeric: bool) -> str:
    """Return the neighbors' mean, or their most frequent value."""
    return repr(statistics.fmean(map(float, values))) if numeric else Counter(values).most_common(1)[0][0]


def loss(truth: str, predicted: str, numeric: bool) -> float:
    """Return the squared error, or 1 for a wrong value."""
    return (float(truth) - float(predicted)) ** 2 if numeric else float(truth != predicted)


def choose(points: list[list[float]], truth: list[str], numeric: bool) -> tuple[int, float]:
    """Return the number of neighbors with the lowest leave-one-out loss, and that loss."""
    chosen = list(range(min(LEFT_OUT, len(points))))
    most = max(TASK.options["neighbours"])
    near = {row: nearest(points[row], points, most, skip=row) for row in chosen}

    def mean_loss(number: int) -> float:
        return statistics.fmean(
            loss(truth[row], combine([truth[other] for other in near[row][:number]], numeric), numeric)
            for row in chosen
        )

    losses = {number: mean_loss(number) for number in TASK.options["neighbours"]}
    best = min(losses, key=lambda number: losses[number])
    return best, losses[best]


def main() -> None:
    """Solve the task."""
    if TASK.sample is None:
        raise SystemExit("The task has no sample submission.")
    TASK.submit(TASK.sample)  # ensure a valid submission from the start
    shutil.copy(__file__, TASK.output_dir / "code")
    rollout = Trajectory(TASK, "nearest-rows")
    train, test, sample = (
        read(path) for path in (TASK.data_dir / "train.csv", TASK.data_dir / "test.csv", TASK.sample)
    )
    ids = TASK.facts["id_columns"]
    targets = [column for column in sample[0] if column not in ids and column in train[0]]
    if not targets:
        rollout.say(
            "The training table has none of the target columns; the sample remains the submission.", stage="submit"
        )
        return
    random.Random(TASK.seed).shuffle(train)
    train = train[: TASK.options["max_rows"]]
    columns = [column for column in test[0] if column in train[0] and column not in ids]
    space = Space(train, columns)
    points = [space.point(row) for row in train]
    rollout.say(
        f"Read {len(train)} training rows, {len(columns)} columns, targets {', '.join(targets)}.", stage="inspect"
    )
    plans = {}
    for target in targets:
        truth = [row[target] for row in train]
        numeric = len(set(truth)) > MANY_VALUES and all(map(is_number, truth))
        number, left_out = choose(points, truth, numeric)
        plans[target] = truth, numeric, number
        kind = "mean squared error" if numeric else "error rate"
        rollout.say(
            f"{target}: {number} neighbors, {kind} {left_out:.4g} on rows left out.",
            stage="draft",
            validation_metric=left_out,
            metric_name=kind,
            lower_is_better=True,
        )
    predictions: dict[tuple[str, ...], Row] = {}
    for row in test:
        if TASK.left < 0:
            rollout.say("Time is nearly up; the remaining rows keep the sample's values.", stage="submit")
            break
        near = nearest(space.point(row), points, max(number for _, _, number in plans.values()))
        predictions[tuple(row[column] for column in ids)] = {
            target: combine([truth[other] for other in near[:number]], numeric)
            for target, (truth, numeric, number) in plans.items()
        }
    with TASK.submission.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(sample[0]))
        writer.writeheader()
        for row in sample:
            writer.writerow({**row, **predictions.get(tuple(row[column] for column in ids), {})})
    rollout.say(f"Wrote predictions for {len(predictions)} of {len(sample)} rows.", stage="submit")


if __name__ == "__main__":
    main()
