"""A toy task and toy agents that use only the standard library, registered by this module as a plugin."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable
from pathlib import Path

from mleredux.errors import InvalidSubmission
from mleredux.hookspecs import hookimpl
from mleredux.models import Agent, Competition, Grader, GradingInput, Limits, Metric, Submission, Task, Thresholds

TOY_PLUGIN = "mleredux_testing.toys"
"""The module of the plugin with the toy task and agents, for `Catalogue(load=[TOY_PLUGIN])`."""

mleredux_contract = 2

_FOLDER = Path(__file__).parent / "toy"
_ROWS = 120
_TEST_ROWS = 40


def _noise(name: str, row: int) -> float:
    """Return a number from 0 to 1 that is the same on all machines."""
    return int.from_bytes(hashlib.sha256(f"{name}/{row}".encode()).digest()[:4]) / 2**32


def _write(path: Path, header: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def fetch(raw: Path) -> None:
    """Create the raw table: two measurements, and whether their sum is large."""
    rows = []
    for row in range(_ROWS):
        width, height = round(_noise("width", row), 3), round(_noise("height", row), 3)
        rows.append((row, width, height, int(width + height > 1)))
    _write(raw / "table.csv", ("id", "width", "height", "large"), rows)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out the first rows."""
    with (raw / "table.csv").open(encoding="utf-8", newline="") as file:
        rows = [tuple(row) for row in csv.reader(file)][1:]
    test, train = rows[:_TEST_ROWS], rows[_TEST_ROWS:]
    _write(public / "train.csv", ("id", "width", "height", "large"), train)
    _write(public / "test.csv", ("id", "width", "height"), (row[:3] for row in test))
    _write(public / "sample_submission.csv", ("id", "large"), ((row[0], 0) for row in test))
    _write(private / "answers.csv", ("id", "large"), ((row[0], row[3]) for row in test))


def score(inputs: GradingInput) -> float:
    """Return the share of rows whose label is correct.

    Raises:
        InvalidSubmission: The file is not `id,large` with the ids of the answers and labels 0 or 1.
    """
    submitted = _labels(inputs.submission)
    answers = _labels(inputs.private / inputs.task.answers)
    if set(submitted) != set(answers):
        raise InvalidSubmission(f"Column 'id' must contain the {len(answers)} ids of the sample, each once.")
    return sum(submitted[row] == label for row, label in answers.items()) / len(answers)


def _labels(path: Path) -> dict[str, int]:
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error):
        raise InvalidSubmission("The submission is not a CSV file of UTF-8 text.") from None
    if not rows or sorted(rows[0]) != ["id", "large"]:
        raise InvalidSubmission("The submission needs the columns 'id' and 'large', and no others.")
    ids, labels = rows[0].index("id"), rows[0].index("large")
    by_id: dict[str, int] = {}
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != 2 or row[labels] not in ("0", "1"):
            raise InvalidSubmission(f"Line {number} of the submission is not an id and a label 0 or 1.")
        if row[ids] in by_id:
            raise InvalidSubmission(f"The id in line {number} of the submission occurs twice.")
        by_id[row[ids]] = int(row[labels])
    return by_id


toy_task = Competition(
    id="toy",
    title="Large rectangles",
    description=_FOLDER / "description.md",
    description_obfuscated=_FOLDER / "description_obfuscated.md",
    fetch=fetch,
    prepare=prepare,
    submission=Submission(id_columns=("id",), target_columns=("large",), types={"large": "integer"}),
    metric=Metric(
        grader=Grader(
            id="toy-accuracy", title="Accuracy of labels 0 and 1", direction="maximize", perfect=1.0, score=score
        )
    ),
    direction="maximize",
    thresholds=Thresholds(gold=0.95, silver=0.9, bronze=0.85, median=0.6),
    sets=("toy",),
)
"""Classify 120 rectangles as large or not. Any tabular agent gets a medal."""

_NEAREST = """
import csv, json, os, pathlib
data, out = pathlib.Path(os.environ["MLEREDUX_DATA_DIR"]), pathlib.Path(os.environ["MLEREDUX_SUBMISSION"])
facts = json.loads((pathlib.Path(os.environ["MLEREDUX_TASK_DIR"]) / "task.json").read_text())
train, test = (list(csv.DictReader((data / name).open())) for name in ("train.csv", "test.csv"))
target = facts["target_columns"][0]
names = [name for name in test[0] if name not in facts["id_columns"]]
def distance(a, b):
    return sum((float(a[name]) - float(b[name])) ** 2 for name in names)
with out.open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow([*facts["id_columns"], target])
    for row in test:
        near = min(train, key=lambda other: distance(row, other))
        writer.writerow([*(row[name] for name in facts["id_columns"]), near[target]])
print("wrote", len(test), "rows")
"""

toy_agent = Agent(
    id="toy-nearest",
    title="The nearest neighbor's label; for tests",
    command=("python", "-c", _NEAREST),
    limits=Limits(time_limit=60, memory_mb=512),
)
"""Solves the toy task, and any other with numeric columns and one target."""


@hookimpl
def mleredux_register_tasks() -> list[Task]:
    """Return the toy task."""
    return [toy_task]


@hookimpl
def mleredux_register_agents() -> list[Agent]:
    """Return the toy agent."""
    return [toy_agent]
