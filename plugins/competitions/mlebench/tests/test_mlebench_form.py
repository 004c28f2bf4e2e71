"""Validation and grading agree on what is well-formed: random changes of every competition's sample submission.

`MLEREDUX_FUZZ=N` tries N changes of each, from another seed each time; CI tries a few dozen, always the same.
"""

from __future__ import annotations

import csv
import io
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import mleredux_competition_mlebench
import pandas as pd
import pytest
from mleredux._core.plugins import current
from mleredux._core.plugins.loader import resolve
from mleredux._core.submissions.schema import write_schema
from mleredux._core.submissions.validation import validate
from mleredux.errors import InvalidSubmission
from mleredux.models import GradingInput, Task

REFS = {ref.id: ref for ref in mleredux_competition_mlebench.mleredux_register_tasks()}
CHANGES = int(os.environ.get("MLEREDUX_FUZZ", "0"))
FEW, LARGE = 24, 1 << 20

STRICTER = {
    "3d-object-detection-for-autonomous-vehicles": "boxes of a class that a picture does not have may be anything",
    "kuzushiji-recognition": "points of a page without characters are only counted",
    "siim-covid19-detection": "boxes of a class that never occurs may be anything",
}
"""Cases in which grading checks less, depending on the answers; validation, which does not know them, checks all."""

SCORELESS = {
    "jigsaw-unintended-bias-in-toxicity-classification": "a subgroup of which every pair is in the wrong order",
    "tweet-sentiment-extraction": "a row without a word where the truth has none either",
}
"""Well-formed submissions that have no score."""

CELLS = (
    *("", " ", "nan", "NA", "None", "-", "inf", "-inf", "text", "a b c", "1_000", "１", "٣", "0x10", "1e5", " 1", "1 "),
    *("0.5", "1.5", "-1", "-0.0", "2", "100", "101", "1e308", "1e400", "9223372036854775808", "99999999999999999999"),
    *("True", "false", "1 2", "1 2 3", "3 2 1 2", "1 4 3 2", "0 1", "2 -1", "1 0", "1 1.5", "1 999999", "x 1"),
    *("1:2", "YES", "1:2:3", "a:b", "0 1.0 0 0 1 1", "0 nan 0 0 1 1", "x 0.5 0 0 1 1", "none 1 0 0 1", "1 2 3 4 5 6 7"),
    *(
        "U+0031 1 1",
        "U+0031 1 x",
        "1 2 2 0 1 1 1 0 car",
        "1 2 2 0 1 0 1 0 car",
        "nan 2 2 0 1 1 1 0 car",
        '"',
        "é",
        "\u3000",
    ),
)
Table = tuple[list[str], list[list[str]]]


def to_bytes(table: Table) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([table[0], *table[1]])
    return text.getvalue().encode()


class Changes:
    """Changed copies of a sample submission."""

    def __init__(self, task: Task, sample: Path, chance: random.Random) -> None:
        csv.field_size_limit(1 << 30)
        with sample.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        self.table: Table = (header, [row for row in rows if row])
        self.ids = [header.index(name) for name in task.submission.id_columns]
        self.targets = [place for place in range(len(header)) if place not in self.ids]
        self.sample, self.chance = sample, chance

    def each(self, count: int) -> Iterator[tuple[str, bytes]]:
        """So many of them, each with a name; every kind before any comes again."""
        kinds = [*self.of_bytes(), *self.of_tables()]
        while count > 0:
            self.chance.shuffle(kinds)
            for kind in kinds[:count]:
                header, rows = self.table
                changed = kind((list(header), [list(row) for row in rows]))
                yield kind.__name__, changed if isinstance(changed, bytes) else to_bytes(changed)
            for _ in range(min(count, len(kinds))):
                yield self.cells()
            count -= 2 * len(kinds)

    def cells(self) -> tuple[str, bytes]:
        """A cell, a few, or a whole column with other values."""
        header, rows = self.table[0], [list(row) for row in self.table[1]]
        column = self.chance.choice([*self.ids, *self.targets * 5])
        value = self.chance.choice(CELLS)
        chosen = self.chance.choice([1, 1, 1, 2, len(rows)])
        for row in self.chance.sample(range(len(rows)), min(chosen, len(rows))):
            rows[row][column] = value
        return f"{value!r} in {chosen} of {header[column]}", to_bytes((header, rows))

    def of_bytes(self) -> list[Callable[[Table], bytes]]:
        def round_trip(table: Table) -> bytes:
            return str(pd.read_csv(self.sample).to_csv(index=False)).encode()

        def with_index(table: Table) -> bytes:
            return str(pd.read_csv(self.sample).to_csv()).encode()

        def empty(table: Table) -> bytes:
            return b""

        def utf16(table: Table) -> bytes:
            return to_bytes(table).decode().encode("utf-16")

        def bom(table: Table) -> bytes:
            return b"\xef\xbb\xbf" + to_bytes(table)

        def windows(table: Table) -> bytes:
            return to_bytes(table).replace(b"\n", b"\r\n")

        def latin1(table: Table) -> bytes:
            return to_bytes(table) + b"caf\xe9,1\n"

        def nul(table: Table) -> bytes:
            return to_bytes(table).replace(b"\n", b"\0\n", 2)

        def blank_lines(table: Table) -> bytes:
            return to_bytes(table).replace(b"\n", b"\n\n", 3)

        def cut_short(table: Table) -> bytes:
            whole = to_bytes(table)
            return whole[: len(whole) * 2 // 3]

        def semicolons(table: Table) -> bytes:
            return to_bytes(table).replace(b",", b";")

        return [round_trip, with_index, empty, utf16, bom, windows, latin1, nul, blank_lines, cut_short, semicolons]

    def of_tables(self) -> list[Callable[[Table], Table]]:
        some = self.chance

        def column() -> int:
            return some.randrange(len(self.table[0]))

        def change_ids(table: Table, change: Callable[[str], str], *, all_rows: bool = True) -> Table:
            for row in table[1] if all_rows else some.sample(table[1], 1):
                for place in self.ids:
                    row[place] = change(row[place])
            return table

        def header_only(table: Table) -> Table:
            return table[0], []

        def row_missing(table: Table) -> Table:
            table[1].pop(some.randrange(len(table[1])))
            return table

        def row_twice(table: Table) -> Table:
            table[1].append(some.choice(table[1]))
            return table

        def row_in_place_of_another(table: Table) -> Table:
            table[1][some.randrange(len(table[1]))] = some.choice(table[1])
            return table

        def unknown_row(table: Table) -> Table:
            table[1].append(["99999999" if place in self.ids else cell for place, cell in enumerate(table[1][0])])
            return table

        def shuffled(table: Table) -> Table:
            some.shuffle(table[1])
            return table

        def column_missing(table: Table) -> Table:
            place = column()
            return [n for i, n in enumerate(table[0]) if i != place], [
                [cell for i, cell in enumerate(row) if i != place] for row in table[1]
            ]

        def column_renamed(table: Table) -> Table:
            table[0][column()] += some.choice(["_", " ", ".1"])
            return table

        def column_twice(table: Table) -> Table:
            place = column()
            return [*table[0], table[0][place]], [[*row, row[place]] for row in table[1]]

        def further_column(table: Table) -> Table:
            value = some.choice(["0", "0.5", "x", ""])
            return [*table[0], "further"], [[*row, value] for row in table[1]]

        def columns_reversed(table: Table) -> Table:
            return table[0][::-1], [row[::-1] for row in table[1]]

        def columns_in_other_case(table: Table) -> Table:
            return [name.swapcase() for name in table[0]], table[1]

        def short_row(table: Table) -> Table:
            some.choice(table[1]).pop()
            return table

        def long_row(table: Table) -> Table:
            some.choice(table[1]).append("1")
            return table

        def ids_with_blanks(table: Table) -> Table:
            return change_ids(table, lambda cell: f" {cell} ", all_rows=some.random() < 0.5)

        def ids_with_zeros(table: Table) -> Table:
            return change_ids(table, lambda cell: f"00{cell}", all_rows=some.random() < 0.5)

        def ids_without_zeros(table: Table) -> Table:
            return change_ids(table, lambda cell: cell.lstrip("0"))

        def ids_as_fractions(table: Table) -> Table:
            return change_ids(table, lambda cell: f"{cell}.0", all_rows=some.random() < 0.5)

        def ids_huge(table: Table) -> Table:
            return change_ids(table, lambda cell: "99999999999999999999", all_rows=some.random() < 0.5)

        def ids_in_capitals(table: Table) -> Table:
            return change_ids(table, str.swapcase)

        def targets_halved(table: Table) -> Table:
            for row in table[1]:
                for place in self.targets:
                    row[place] = "0.5"
            return table

        return [
            *(header_only, row_missing, row_twice, row_in_place_of_another, unknown_row, shuffled, column_missing),
            *(column_renamed, column_twice, further_column, columns_reversed, columns_in_other_case, short_row),
            *(long_row, ids_with_blanks, ids_with_zeros, ids_without_zeros, ids_as_fractions, ids_huge),
            *(ids_in_capitals, targets_halved),
        ]


def refusal(task: Task, submission: Path, private: Path) -> str | None:
    grader = current().grader(str(task.metric.grader))
    try:
        grader.score(GradingInput(submission, private, task, task.metric.options))
    except InvalidSubmission as error:
        return str(error)
    return None


@pytest.mark.shared
@pytest.mark.parametrize("competition", sorted(REFS))
def test_validation_and_grading_agree(
    competition: str, shared: Path, golden_case: Callable[[Path], Path], tmp_path: Path
) -> None:
    task = resolve(REFS[competition])
    prepared = golden_case(shared / "golden" / competition) / "prepared"
    sample = prepared / "public" / str(task.submission.sample)
    schema = write_schema(task, prepared / "public", tmp_path / "schema")
    assert validate(schema, sample, task=task).valid
    few = FEW if sample.stat().st_size < LARGE else 4
    changes = Changes(task, sample, random.Random(None if CHANGES else competition))
    path = tmp_path / "submission.csv"
    disagreements = []
    for name, content in changes.each(CHANGES or few):
        path.write_bytes(content)
        verdict, refused = validate(schema, path, task=task), refusal(task, path, prepared / "private")
        if verdict.valid == (refused is None):
            continue
        if competition in (SCORELESS if verdict.valid else STRICTER):
            continue
        disagreements.append((name, verdict.message, refused))
    assert not disagreements


@pytest.mark.shared
@pytest.mark.parametrize("competition", sorted(REFS))
def test_a_sample_validates_after_pandas_wrote_it_again(
    competition: str, shared: Path, golden_case: Callable[[Path], Path], tmp_path: Path
) -> None:
    task = resolve(REFS[competition])
    prepared = golden_case(shared / "golden" / competition) / "prepared"
    schema = write_schema(task, prepared / "public", tmp_path / "schema")
    pd.read_csv(prepared / "public" / str(task.submission.sample)).to_csv(tmp_path / "submission.csv", index=False)
    verdict = validate(schema, tmp_path / "submission.csv", task=task)
    assert verdict.valid, verdict.message
    assert refusal(task, tmp_path / "submission.csv", prepared / "private") is None
