"""Malformed submissions, derived from a valid one."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mleredux._core.submissions.files import open_regular
from mleredux.errors import InvalidSubmission, TaskBroken, one_line
from mleredux.models import Score

from mleredux_testing.findings import Findings

Table = tuple[list[str], list[list[str]]]
Grade = Callable[[Path], Score]
MAX_SENTENCE = 600


@dataclass(frozen=True)
class Form:
    """The known properties of a task's submission.

    Attributes:
        ids: Id columns.
        numbers: Target columns that hold numbers.
        targets: All target columns.
        ids_fixed: Whether exactly the ids of the good submission must occur.
    """

    ids: tuple[str, ...]
    targets: tuple[str, ...]
    numbers: tuple[str, ...]
    ids_fixed: bool = True


def read_csv(path: Path) -> Table:
    """Return a table as text: its header and rows."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    return (rows[0], rows[1:]) if rows else ([], [])


def write_csv(path: Path, table: Table) -> Path:
    """Write a table, and return the path."""
    path.write_bytes(_csv(table))
    return path


def _csv(table: Table) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table[0])
    writer.writerows(table[1])
    return text.getvalue().encode()


def malformed(good: Table, form: Form) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of submissions that must be rejected.

    Args:
        good: A valid submission.
        form: The properties of the submission.
    """
    header, rows = good
    yield "empty file", b""
    yield "header without rows", _csv((header, []))
    yield "UTF-16 text", _csv(good).decode().encode("utf-16")
    yield "bytes that are not text", b"\x00\xff\xfe\x80" * 64
    yield "an HTML page", b"<!doctype html><html><body>429 Too Many Requests</body></html>\n"
    for name in form.targets[:1]:
        place = header.index(name)
        yield f"without column {name}", _csv(_without(good, place))
        yield f"column {name} misspelled", _csv((_put(header, place, f"{name}_predicted"), rows))
    for name in form.ids[:1]:
        yield f"without id column {name}", _csv(_without(good, header.index(name)))
    for name in form.numbers[:1]:
        place = header.index(name)
        for word, value in (("a missing value", ""), ("NaN", "nan"), ("infinity", "inf"), ("text", "a lot")):
            yield f"{word} in column {name}", _csv((header, [_put(rows[0], place, value), *rows[1:]]))
    if form.ids and form.ids_fixed and len(rows) > 1:
        place = header.index(form.ids[0])
        yield "a row too few", _csv((header, rows[1:]))
        yield "a row too many", _csv((header, [*rows, _put(rows[0], place, f"{rows[0][place]}99999")]))
        yield "an id twice", _csv((header, [rows[0], _put(rows[1], place, rows[0][place]), *rows[2:]]))
        yield "an unknown id", _csv((header, [_put(rows[0], place, f"{rows[0][place]}99999"), *rows[1:]]))


def check_refusals(findings: Findings, good: Path, form: Form, grade: Grade, folder: Path) -> None:
    """Check that each malformed submission is rejected with one sentence, by core or by the grader."""
    table = read_csv(good)
    for name, content in malformed(table, form):
        path = folder / "malformed.csv"
        path.write_bytes(content)
        _check_refused(findings, f"refuses {name}", path, grade)
    _check_refused(findings, "refuses a missing file", folder / "absent.csv", grade)
    place = folder / "folder.csv"
    place.mkdir(exist_ok=True)
    _check_refused(findings, "refuses a folder", place, grade)
    link = folder / "link.csv"
    link.unlink(missing_ok=True)
    link.symlink_to(good.resolve())
    _check_refused(findings, "refuses a link", link, grade)


def check_order(findings: Findings, good: Path, form: Form, grade: Grade, folder: Path) -> None:
    """Check that the order of rows does not change the score, if ids identify them."""
    if not form.ids or not form.ids_fixed:
        findings.good("row order", "not checked: rows are not identified by fixed ids")
        return
    header, rows = read_csv(good)
    with findings.looking_at("row order"):
        straight = grade(good).value
        turned = grade(write_csv(folder / "turned.csv", (header, rows[::-1]))).value
        findings.expect(
            "row order",
            _same(straight, turned),
            f"the same rows score {straight} in one order and {turned} in another.",
            "Match rows by their ids.",
        )


def _check_refused(findings: Findings, name: str, path: Path, grade: Grade) -> None:
    try:
        open_regular(path).close()
        score = grade(path)
    except OSError:
        findings.good(name, "rejected before the grader is called")
    except InvalidSubmission as error:
        sentence = str(error)
        is_sentence = 0 < len(sentence) <= MAX_SENTENCE and "\n" not in sentence and "Traceback" not in sentence
        findings.expect(name, is_sentence, f"the error is not one sentence: {sentence[:200]!r}")
    except TaskBroken as error:
        findings.bad(name, f"the task is blamed: {error}", "Raise InvalidSubmission for errors that the agent can fix.")
    except Exception as error:  # a grader may raise anything; the exception becomes a finding
        findings.bad(
            name,
            f"the grader fails with {one_line(error)}",
            "Raise InvalidSubmission with one sentence for the agent.",
        )
    else:
        findings.bad(name, f"it is scored ({score.value}).", "Raise InvalidSubmission with one sentence for the agent.")


def _same(first: float, second: float) -> bool:
    return first == second or abs(first - second) <= 1e-9 * max(1.0, abs(first))


def _put(row: list[str], place: int, value: str) -> list[str]:
    return [*row[:place], value, *row[place + 1 :]]


def _without(table: Table, place: int) -> Table:
    return [name for i, name in enumerate(table[0]) if i != place], [
        [cell for i, cell in enumerate(row) if i != place] for row in table[1]
    ]
