"""Shared functions of the starter competitions: write the raw table, and split it into public and private files.

Tables are lists of rows of strings throughout: preparation never parses and reformats numbers, so the prepared bytes do
not depend on the versions of pandas, numpy or scikit-learn.
"""

from __future__ import annotations

import csv
import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

RAW_FILE = "table.csv"
TEST_SHARE = 0.3


def number(value: float) -> str:
    """Format a number in its shortest round-trip form; integers have no decimal point."""
    plain = float(value)
    return str(int(plain)) if plain.is_integer() else repr(plain)


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a CSV with Unix line endings and the same bytes on all platforms."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def read_table(path: Path) -> tuple[list[str], list[list[str]]]:
    """Read a CSV's header and rows, as text."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    return rows[0], rows[1:]


def write_raw(raw: Path, columns: dict[str, Iterable[Any]]) -> None:
    """Write the raw table of a competition from named columns of equal length (numbers or texts)."""
    texts = [[value if isinstance(value, str) else number(value) for value in values] for values in columns.values()]
    write_table(raw / RAW_FILE, list(columns), zip(*texts, strict=True))


def shuffled(count: int, salt: str) -> list[int]:
    """Return the numbers 0 … count-1 in the order of the SHA-256 of `<salt>:<number>`, a portable permutation."""
    return sorted(range(count), key=lambda number: hashlib.sha256(f"{salt}:{number}".encode()).digest())


def test_rows(salt: str, groups: Sequence[str], share: float = TEST_SHARE) -> set[int]:
    """Return the indices of held-out rows: the first `share` (rounded) of each group, in shuffled order.

    Args:
        salt: Seed of the permutation.
        groups: The group (class) of each row; all are equal if the split is not stratified.
        share: Share of each group to hold out.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for row in shuffled(len(groups), f"{salt}/split"):
        members[groups[row]].append(row)
    return {row for rows in members.values() for row in rows[: round(share * len(rows))]}


def split_table(
    raw: Path,
    public: Path,
    private: Path,
    *,
    salt: str,
    targets: Sequence[str],
    sample: dict[str, str],
    stratify: bool = False,
    answers: Callable[[list[str]], list[str]] = list,
) -> None:
    """Write `train.csv`, `test.csv`, `sample_submission.csv` (public) and `answers.csv` (private) from the raw table.

    Rows are renumbered by a second permutation (`id`), so that neither order nor ids reveal the original position.

    Args:
        salt: Seed of the permutations; the task's id and version.
        targets: Columns of the raw table that test.csv lacks.
        sample: The sample submission's columns other than `id`, with their constant values.
        stratify: Whether to hold out the same share of each value of the first target.
        answers: Converts a row's targets to a row of the answers (the sample's columns); by default unchanged.
    """
    header, rows = read_table(raw / RAW_FILE)
    target_places = [header.index(target) for target in targets]
    feature_places = [place for place in range(len(header)) if place not in target_places]
    held_out = test_rows(salt, [row[target_places[0]] if stratify else "" for row in rows])
    train, test, solution = [], [], []
    for new_id, row_number in enumerate(shuffled(len(rows), f"{salt}/ids")):
        row = rows[row_number]
        features = [row[place] for place in feature_places]
        truth = [row[place] for place in target_places]
        if row_number in held_out:
            test.append([str(new_id), *features])
            solution.append([str(new_id), *answers(truth)])
        else:
            train.append([str(new_id), *features, *truth])
    names = [header[place] for place in feature_places]
    write_table(public / "train.csv", ["id", *names, *targets], train)
    write_table(public / "test.csv", ["id", *names], test)
    write_table(public / "sample_submission.csv", ["id", *sample], [[row[0], *sample.values()] for row in test])
    write_table(private / "answers.csv", ["id", *sample], solution)


def one_hot(values: Sequence[str], truth: list[str]) -> list[str]:
    """Return a row of zeros with a one in the column of the true value."""
    return ["1" if value == truth[0] else "0" for value in values]


def one_hot_answers(values: Sequence[str]) -> Callable[[list[str]], list[str]]:
    """Return a function that creates answers with one column per value."""
    return partial(one_hot, tuple(values))
