"""Compare graders with reading their files with pandas, and with plain loops: `uv run python benchmarks/grading.py`.

Aim: grading takes at most three times the time of reading both CSV files. The loops are our own plain versions of the
published benchmark's reported approach: one-hot answers set row by row, masks painted run by run.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pandas
from _measuring import alternate, machine, seconds_of, table
from _tables import frequent, replaced, sentences, tag_lists, vocabulary
from mleredux import prepare, tasks
from mleredux._core.plugins import current
from mleredux.models import Competition, Grader, GradingInput, Metric, Submission
from mleredux_graders.segmentation.run_lengths import common, decode

REPEATS = 3
Sides = tuple[Any, Any]


def labels(rng: numpy.random.Generator, rows: int) -> Sides:
    """Return two classes, and guesses that are correct half of the time."""
    return rng.integers(0, 2, (2, rows))


def scores(rng: numpy.random.Generator, rows: int) -> Sides:
    """Return two classes, and probabilities."""
    true = rng.integers(0, 2, rows)
    return true, 1 / (1 + numpy.exp(-true - rng.normal(size=rows)))


def values(rng: numpy.random.Generator, rows: int) -> Sides:
    """Return numbers, and guesses close to them."""
    true = rng.normal(size=rows)
    return true, true + rng.normal(size=rows)


def texts(rng: numpy.random.Generator, rows: int) -> Sides:
    """Return texts of about ten words, half of which are replaced by similar ones."""
    true = sentences(rng, rows, 10, vocabulary(rng, 20_000))
    return true, replaced(rng, true, true, 0.5)


def lists(rng: numpy.random.Generator, rows: int) -> Sides:
    """Return one to five relevant items, and twelve guesses."""
    pool = numpy.array([str(number) for number in range(10**6, 10**6 + 50_000)], dtype=object)
    relevant = numpy.array(
        [" ".join(row[: 1 + number % 5]) for number, row in enumerate(frequent(rng, pool, (rows, 5)))]
    )
    return relevant, [" ".join(row) for row in frequent(rng, pool, (rows, 12))]


def tags(rng: numpy.random.Generator, rows: int) -> Sides:
    """Return one to five labels, which differ in half of the rows."""
    true = tag_lists(rng, rows)
    return true, replaced(rng, true, true, 0.5)


CASES: dict[str, tuple[Callable[[numpy.random.Generator, int], Sides], dict[str, Any]]] = {
    "accuracy": (labels, {}),
    "roc-auc": (scores, {}),
    "rmse": (values, {}),
    "spearman": (values, {}),
    "exact-match": (texts, {}),
    "levenshtein": (texts, {}),
    "word-jaccard": (texts, {}),
    "f1-multilabel": (tags, {}),
    "map-at-k": (lists, {"k": 12}),
    "mrr": (lists, {}),
}


def write(folder: Path, metric: str, rows: int, *, text_ids: bool) -> None:
    """Write answers, and a submission in a different order."""
    true, predicted = CASES[metric][0](numpy.random.default_rng(0), rows)
    ids = [f"user_{number:08d}" for number in range(rows)] if text_ids else range(rows)
    pandas.DataFrame({"id": ids, "y": true}).to_csv(folder / "answers.csv", index=False)
    submission = pandas.DataFrame({"id": ids, "y": predicted}).sample(frac=1, random_state=0)
    submission.to_csv(folder / "submission.csv", index=False)


def cpu_of(work: Callable[[], object]) -> float:
    """Return the CPU seconds of a function."""
    began = time.process_time()
    work()
    return time.process_time() - began


def in_turns(*works: Callable[[], object]) -> list[float]:
    """Return median CPU seconds of each function, measured alternately after one uncounted round."""
    rounds = [[cpu_of(work) for work in works] for _ in range(REPEATS + 1)][1:]
    return [statistics.median(taken) for taken in zip(*rounds, strict=True)]


def compare(grader: Grader, folder: Path, options: dict[str, Any]) -> tuple[float, float]:
    """Return CPU seconds of reading both files, and of grading."""
    task = Competition(
        id="bench",
        title="Benchmark",
        description=folder / "none.md",
        submission=Submission(id_columns=("id",), target_columns=("y",)),
        metric=Metric(grader=grader, options=options),
        direction=grader.direction,
    )

    def read() -> None:
        for name in ("submission.csv", "answers.csv"):
            pandas.read_csv(folder / name)

    reading, grading = in_turns(
        read, lambda: grader.score(GradingInput(folder / "submission.csv", folder, task, options))
    )
    return reading, grading


def one_hot_rows(true: list[str], classes: list[str]) -> Any:
    """Return indicators that are set row by row in a table."""
    frame = pandas.DataFrame(0, index=range(len(true)), columns=classes)
    for row, label in enumerate(true):
        frame.loc[row, label] = 1
    return frame.to_numpy()


def one_hot_all(true: list[str], classes: list[str]) -> Any:
    """Return indicators of all rows at once, as in our graders."""
    return (numpy.array(true, dtype=object)[:, None] == numpy.array(classes, dtype=object)[None, :]).astype(float)


def painted(mask: str, size: int) -> Any:
    """Return a mask as pixels, painted one by one."""
    pixels = [0] * size
    pieces = mask.split()
    for start, length in zip(pieces[0::2], pieces[1::2], strict=True):
        for place in range(int(start) - 1, int(start) - 1 + int(length)):
            pixels[place] = 1
    return pixels


def rivals() -> list[tuple[str, float, float]]:
    """Return names and CPU seconds of loops and of our versions, which must have equal results."""
    rng = numpy.random.default_rng(0)
    classes = [f"class_{number:03d}" for number in range(120)]
    true = [classes[number] for number in rng.integers(0, 120, 5_000)]
    assert (one_hot_rows(true, classes) == one_hot_all(true, classes)).all()
    hot = in_turns(lambda: one_hot_rows(true, classes), lambda: one_hot_all(true, classes))
    size, masks = 512 * 512, []
    for _ in range(100):
        places = numpy.sort(rng.choice(size, 400, replace=False)) + 1
        masks.append(" ".join(f"{a} {b - a}" for a, b in places.reshape(-1, 2)))
    pairs = list(zip(masks[::2], masks[1::2], strict=True))

    def loop() -> list[int]:
        return [sum(a & b for a, b in zip(painted(x, size), painted(y, size), strict=True)) for x, y in pairs]

    def ours() -> list[int]:
        return [common(decode(x, size), decode(y, size)) for x, y in pairs]

    assert loop() == ours()
    return [
        ("one-hot answers, 5,000 rows of 120 classes", hot[0], hot[1]),
        ("common pixels of 50 pairs of masks, 200 runs each, 512 × 512", *in_turns(loop, ours)),
    ]


FLOOR = """
import json, sys
from pathlib import Path
import pandas, sklearn.metrics
from mleredux.models import GradingInput
from mleredux._core.plugins import current
from mleredux.errors import InvalidSubmission

for line in map(json.loads, open(sys.argv[1])):
    task = current().task(line["competition_id"])
    path, private = Path(line["submission_path"]), Path(sys.argv[2], task.id, "prepared", "private")
    grader = task.metric.grader
    try:
        grader = current().grader(grader) if isinstance(grader, str) else grader
        grader.score(GradingInput(path, private, task, task.metric.options))
    except InvalidSubmission:
        pass
"""


def batch(count: int) -> list[tuple[str, ...]]:
    """Measure `mleredux grade --jsonl`, and one process that imports everything once and grades all submissions."""
    with tempfile.TemporaryDirectory() as folder:
        listed, data = Path(folder) / "submission.jsonl", Path(folder) / "data"
        paths = {row["id"]: prepare(row["id"], data_dir=data).public for row in tasks(plugin="starter")}
        tables = {name: path / "sample_submission.csv" for name, path in paths.items()}
        names, samples = zip(*((name, path) for name, path in tables.items() if path.is_file()), strict=True)
        empty = Path(folder) / "empty.csv"
        empty.write_text("id,nothing\n")
        lines = []
        for number in range(count):
            task = number % len(names)
            path = empty if number // len(names) % 7 == 6 else samples[task]  # some are refused
            lines.append(json.dumps({"competition_id": names[task], "submission_path": str(path)}))
        listed.write_text("\n".join(lines) + "\n")
        program = [sys.executable, "-m", "mleredux", "grade", "--jsonl", str(listed), "--data-dir", str(data)]
        floor = [sys.executable, "-c", FLOOR, str(listed), str(data)]
        taken = alternate(REPEATS, ours=lambda: seconds_of(program, code=3), floor=lambda: seconds_of(floor))
    (_, ours), (_, least) = taken["ours"], taken["floor"]
    head = ("submissions", "tasks", "`grade --jsonl`, s", "one bare process, s", "ours : bare")
    return [head, (str(count), str(len(names)), f"{ours:.2f}", f"{least:.2f}", f"{ours / least:.2f}×")]


def main() -> None:
    """Measure and print, or write, the tables."""
    parser = argparse.ArgumentParser(description="How fast graders are beside reading.")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--only", default="", help="Only metrics with this text in their id.")
    parser.add_argument("--markdown", type=Path, help="Is added to the end of this file.")
    arguments = parser.parse_args()
    sizes = (arguments.rows // 10, arguments.rows)
    speed = [("metric", "ids", "read, s", "grade, s", "grade : read", f"growth from {sizes[0]:,} rows")]
    for metric, (_, options) in CASES.items():
        for text_ids in (False, True):
            if arguments.only not in metric:
                continue
            taken = []
            for size in sizes:
                with tempfile.TemporaryDirectory() as folder:
                    write(Path(folder), metric, size, text_ids=text_ids)
                    taken.append(compare(current().grader(metric), Path(folder), options))
            (_, small), (reading, grading) = taken
            ratio, growth = f"{grading / reading:.1f}×", f"{grading / small:.1f}×"
            speed.append(
                (metric, "texts" if text_ids else "numbers", f"{reading:.3f}", f"{grading:.3f}", ratio, growth)
            )
    loops = [("what", "loop, s", "ours, s", "loop : ours")]
    loops += [(what, f"{loop:.3g}", f"{ours:.3g}", f"{loop / ours:.0f}×") for what, loop, ours in rivals()]
    text = "\n\n".join(
        [
            "## Many submissions at once",
            f"Generated by `{shlex.join(['python', *sys.argv])}`. {machine()}",
            "CPU seconds of whole commands, children included. The bare process imports pandas and scikit-learn once "
            "and calls the same graders on the same files, without isolation, limits or reports: less than the "
            "published benchmark, whose code is not here, can take.",
            table(*batch(91)),
            "## Metric by metric",
            f"CPU seconds of {arguments.rows:,} rows, the submission's in another order; medians of {REPEATS} rounds.",
            table(*speed),
            "## Beside plain loops",
            "Our own plain versions of the slow ways, on the same data, giving the same result; CPU seconds.",
            table(*loops),
        ]
    )
    print(text)
    if arguments.markdown:
        with arguments.markdown.open("a", encoding="utf-8") as file:
            file.write("\n" + text + "\n")


if __name__ == "__main__":
    main()
