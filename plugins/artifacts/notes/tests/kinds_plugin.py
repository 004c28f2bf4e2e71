"""Small tasks of many kinds: tables, quoted tables, pictures, folders of pictures, texts, days, several targets."""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from mleredux import hookimpl
from mleredux.plugin.grader import Grader, GradingInput
from mleredux.plugin.task import Competition, Metric, Submission, Thresholds

DESCRIPTION = Path(__file__)
Row = Sequence[Any]


def write(path: Path, rows: Sequence[Row], **form: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file, **{"lineterminator": "\n", **form}).writerows(rows)


def tables(public: Path, private: Path, rows: list[Row], targets: Sequence[str], first: Any, **form: Any) -> None:
    """Write a table with a header, whose last columns are the targets: two thirds to train, a third to test."""
    (header, *rows), width = rows, len(targets)
    train, test = rows[: 2 * len(rows) // 3], rows[2 * len(rows) // 3 :]
    write(public / "train.csv", [header, *train], **form)
    write(public / "test.csv", [header[:-width], *(row[:-width] for row in test)], **form)
    sample = [[header[0], *targets], *([row[0], *[first] * width] for row in test)]
    write(public / "sample_submission.csv", sample, **form)
    write(private / "answers.csv", [[header[0], *targets], *([row[0], *row[-width:]] for row in test)])


def numbers(draw: random.Random, count: int) -> list[int]:
    return draw.sample(range(1000, 9999), count)


def flowers(raw: Path, public: Path, private: Path) -> None:
    draw = random.Random(1)
    centres = {"iris": (2, 7, 1), "lily": (6, 2, 5), "rose": (5, 6, 9)}
    rows: list[Row] = [("id", "petal", "sepal", "colour", "species")]
    more: list[Row] = [("id", "height")]
    for key in numbers(draw, 240):
        species = draw.choice(sorted(centres))
        petal, sepal, height = (round(draw.gauss(value, 1.2), 3) for value in centres[species])
        colour = draw.choice(["red", "white"] if species == "rose" else ["white", "blue"])
        rows.append((key, petal, sepal, colour, species if draw.random() > 0.04 else "iris"))
        more.append((key, height))
    tables(public, private, rows, ["species"], "iris")
    write(public / "heights.csv", [more[0], *sorted(more[1:])])


def houses(raw: Path, public: Path, private: Path) -> None:
    draw = random.Random(2)
    rows: list[Row] = [("Id", "area", "rooms", "street", "price")]
    for key in range(1, 241):
        area, rooms, street = draw.uniform(40, 200), draw.randint(1, 6), draw.choice(["Elm, north", "Oak", 'The "Row"'])
        price = 2 * area + 15 * rooms + {"Oak": 60}.get(street, 0) + draw.gauss(0, 8)
        rows.append((key, round(area, 2), rooms, street, round(price, 2)))
    order = [rows[0], *draw.sample(rows[1:], 240)]
    tables(public, private, order, ["price"], 250, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")


def wells(raw: Path, public: Path, private: Path) -> None:
    draw = random.Random(3)
    rows: list[Row] = [("well", "depth", "salt", "iron", "flow", "heat")]
    for key in numbers(draw, 240):
        depth, salt, iron = (draw.uniform(0, 10) for _ in range(3))
        flow, heat = 3 * depth - salt + draw.gauss(0, 0.5), depth + 2 * iron + draw.gauss(0, 0.5)
        rows.append((f"w{key}", *(round(value, 4) for value in (depth, salt, iron, flow, heat))))
    tables(public, private, rows, ["flow", "heat"], 10)


def words(raw: Path, public: Path, private: Path) -> None:
    draw = random.Random(4)
    common = ["the", "a", "of", "to", "and", "in", "it", "was", "he", "she", "on", "for", "with", "but"]
    own = {
        "anna": ["sea", "ship", "wave", "salt", "gull", "tide", "sail", "harbour"],
        "ben": ["hill", "wood", "deer", "moss", "fern", "oak", "path"],
    }
    rows: list[Row] = [("id", "text", "author")]
    for key in numbers(draw, 240):
        author = draw.choice(sorted(own))
        said = [draw.choice(own[author] if draw.random() < 0.1 else common) for _ in range(14)]
        rows.append((f"id{key}", f"{' '.join(said)}, he said.", author))
    train, test = rows[1:161], rows[161:]
    write(public / "train.csv", [rows[0], *train])
    write(public / "test.csv", [("id", "text"), *(row[:2] for row in test)])
    write(public / "sample_submission.csv", [("id", "anna", "ben"), *((row[0], 0.5, 0.5) for row in test)])
    answers = ((row[0], int(row[2] == "anna"), int(row[2] == "ben")) for row in test)
    write(private / "answers.csv", [("id", "anna", "ben"), *answers])


def sales(raw: Path, public: Path, private: Path) -> None:
    draw = random.Random(5)
    rows: list[Row] = [("date", "open", "sold")]
    for number in range(420):
        day = date(2018, 1, 1) + timedelta(days=number)
        sold = 100 + 0.1 * number + 30 * (day.weekday() in (4, 5)) - 40 * (day.weekday() == 6) + draw.gauss(0, 4)
        rows.append((str(day), int(day.weekday() != 6), round(sold, 1)))
    tables(public, private, rows, ["sold"], 100)


def visits(raw: Path, public: Path, private: Path) -> None:
    """Ids in the order of time, by which the target grows; rows in another order."""
    draw = random.Random(8)
    rows: list[Row] = [("id", "age", "cost")]
    for key in draw.sample(range(1, 241), 240):
        age = draw.randint(20, 80)
        rows.append((key, age, round(0.5 * key + 0.2 * age + draw.gauss(0, 4), 2)))
    tables(public, private, rows, ["cost"], 70)


def picture(draw: random.Random, kind: str, path: Path) -> None:
    from PIL import Image

    image = Image.new("L", (16, 16), 0)
    left, top, size = draw.randint(0, 4), draw.randint(0, 4), draw.choice((7, 8, 8, 9, 9, 10))
    for x in range(size):
        for y in range(size):
            if kind == "square" or (x - size / 2 + 0.5) ** 2 + (y - size / 2 + 0.5) ** 2 < (size / 2 - 0.8) ** 2:
                image.putpixel((left + x, top + y), draw.randint(150, 255))
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)


def shapes(raw: Path, public: Path, private: Path) -> None:
    draw = random.Random(6)
    rows: list[Row] = [(f"{key:x}", draw.choice(["disc", "square"])) for key in sorted(draw.sample(range(2**40), 150))]
    rows = draw.sample(rows, len(rows))
    train, test = rows[:90], sorted(rows[90:])
    for folder, part in (("train", train), ("test", test)):
        for key, kind in part:
            picture(draw, kind, public / f"{folder}_images" / f"{key}.png")
    write(public / "train.csv", [("image_id", "label"), *train])
    write(public / "sample_submission.csv", [("image_id", "label"), *((key, "disc") for key, _ in test)])
    write(private / "answers.csv", [("image_id", "label"), *test])


def crates(raw: Path, public: Path, private: Path) -> None:
    draw = random.Random(7)
    names = [f"{number:04}.png" for number in draw.sample(range(10_000), 150)]
    rows: list[Row] = [(name, draw.choice(["disc", "square"])) for name in names]
    for name, kind in rows[:90]:
        picture(draw, kind, public / "train" / kind / name)
    for name, kind in rows[90:]:
        picture(draw, kind, public / "test" / name)
    write(public / "sample_submission.csv", [("file", "kind"), *((name, "disc") for name, _ in rows[90:])])
    write(private / "answers.csv", [("file", "kind"), *rows[90:]])


def pairs(given: GradingInput) -> list[tuple[str, str]]:
    """Answers and predictions, cell by cell."""
    answers, made = (
        {row[0]: row[1:] for row in list(csv.reader(path.open()))[1:]}
        for path in (given.private / "answers.csv", given.submission)
    )
    return [pair for key, cells in answers.items() for pair in zip(cells, made[key], strict=True)]


def accuracy(given: GradingInput) -> float:
    return sum(one == other for one, other in pairs(given)) / len(pairs(given))


def error(given: GradingInput) -> float:
    return math.sqrt(sum((float(one) - float(other)) ** 2 for one, other in pairs(given)) / len(pairs(given)))


def loss(given: GradingInput) -> float:
    chances = [float(other) for one, other in pairs(given) if float(one)]
    return -sum(math.log(min(max(chance, 1e-15), 1)) for chance in chances) / len(chances)


TASKS: dict[str, tuple[Callable[[Path, Path, Path], None], str, tuple[str, ...], str, float]] = {
    "flowers": (flowers, "id", ("species",), "kinds-accuracy", 0.8),
    "houses": (houses, "Id", ("price",), "kinds-error", 30),
    "wells": (wells, "well", ("flow", "heat"), "kinds-error", 3),
    "words": (words, "id", ("anna", "ben"), "kinds-loss", 0.6),
    "sales": (sales, "date", ("sold",), "kinds-error", 15),
    "visits": (visits, "id", ("cost",), "kinds-error", 8),
    "shapes": (shapes, "image_id", ("label",), "kinds-accuracy", 0.75),
    "crates": (crates, "file", ("kind",), "kinds-accuracy", 0.75),
}


@hookimpl
def mleredux_register_graders() -> list[Grader]:
    return [
        Grader(id="kinds-accuracy", title="Accuracy", direction="maximize", score=accuracy),
        Grader(id="kinds-error", title="RMSE", direction="minimize", score=error),
        Grader(id="kinds-loss", title="Log-loss", direction="minimize", score=loss),
    ]


@hookimpl
def mleredux_register_tasks() -> list[Competition]:
    return [
        Competition(
            id=task,
            title=task.capitalize(),
            description=DESCRIPTION,
            fetch=lambda raw: None,
            prepare=prepare,
            submission=Submission(id_columns=(key,), target_columns=targets),
            metric=Metric(grader=grader),
            direction="maximize" if grader == "kinds-accuracy" else "minimize",
            thresholds=Thresholds(gold=gold, silver=gold, bronze=gold, median=gold),
        )
        for task, (prepare, key, targets, grader, gold) in TASKS.items()
    ]
