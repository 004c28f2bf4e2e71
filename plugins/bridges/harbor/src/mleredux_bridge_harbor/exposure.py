"""Scan a task directory to verify that agents see no part of the answers, the graders or the solution."""

from __future__ import annotations

import csv
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from mleredux.plugin.task import Task

from mleredux_bridge_harbor.packages import PACKED

_FEWEST = 10
"""Minimum number of rows shared with the answers at which equal columns are not a coincidence."""
_SHORT, _LONG = 16, 1 << 20
"""Minimum and maximum length in bytes of texts to search for: shorter texts might occur by chance."""


def exposed(folder: Path, task: Task) -> Iterator[str]:
    """Yield a phrase for each part of hidden files that agents of a task directory would see.

    These are copies of hidden files, including those in ZIP archives; their texts in other files; and table
    columns that equal the answers in all common rows, matched by ids or else by order.
    """
    prepared = folder / "tests" / "data" / task.id / "prepared"
    forms = [each.submission for each in (task, task.base) if each is not None]
    sample = {digest for form in forms for digest in _digests(prepared / "public" / str(form.sample))}
    hidden = {
        path: path.relative_to(folder).as_posix()
        for part in ("tests", "solution")
        for path in (folder / part).rglob("*")
        if path.is_file() and path.stat().st_size >= _SHORT and not _digests(path) & sample
        if not any(map(path.is_relative_to, (prepared / "public", prepared / "private" / "inner" / "public")))
    }
    copies = {digest: name for path, name in hidden.items() for digest in _digests(path)}
    if (packed := folder / "tests" / PACKED).exists():
        copies |= {digest: name for digest, name in _packed(packed.read_bytes()).items() if digest not in sample}
    texts = {
        path.read_bytes().strip(): name
        for path, name in hidden.items()
        if "packages" not in path.parts and path.stat().st_size <= _LONG
    }
    answers = list(read_rows(prepared / "private" / task.answers))
    for path in (folder / "instruction.md", *sorted((folder / "environment").rglob("*"))):
        if not path.is_file():
            continue
        name = path.relative_to(folder).as_posix()
        sources = sorted(copies[digest] for digest in _digests(path) & copies.keys())
        if not sources and path.stat().st_size <= _LONG:
            content = path.read_bytes()
            sources = sorted(source for text, source in texts.items() if text in content)
        yield from (f"{name} contains {source}" for source in sources)
        for column in _revealing(read_rows(path), answers, task):
            yield f"column {column!r} of {name} equals the answers"


def _revealing(rows: Iterator[dict[str, str]], answers: list[dict[str, str]], task: Task) -> list[str]:
    """Return the columns of a table that equal a column of the answers in all common rows."""
    names, first = list(answers[0]) if answers else [], next(rows, None)
    if first is None:
        return []
    ids = [column for column in task.submission.id_columns if column in names and column in first]
    known: dict[Any, dict[str, str]] = {
        tuple(row[column] for column in ids) if ids else place: row for place, row in enumerate(answers)
    }
    targets = [name for name in task.submission.target_columns or names if name in names and name not in ids]
    pairs = [(column, target) for column in first if column not in ids for target in targets]
    values: dict[str, set[Any]] = {target: set() for target in targets}
    joined = 0
    for place, row in enumerate((first, *rows)):
        other = known.get(tuple(row[column] for column in ids) if ids else place)
        if other is not None:
            joined += 1
            pairs = [(column, target) for column, target in pairs if _value(row[column]) == _value(other[target])]
            for target in targets:
                values[target].add(_value(other[target]))
    return sorted({column for column, target in pairs if joined >= _FEWEST and len(values[target]) > 1})


def read_rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file as dictionaries; no rows for other files."""
    if path.suffix == ".csv" and path.is_file():
        csv.field_size_limit(1 << 26)
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            yield from (row for row in csv.DictReader(file, restval="") if None not in row)


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


@lru_cache(maxsize=8)
def _packed(content: bytes) -> dict[str, str]:
    """Return the names of the packages' files, except short ones, by SHA-256."""
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = {member.name: archive.extractfile(member) for member in archive if member.size >= _SHORT}
        return {hashlib.sha256(file.read()).hexdigest(): f"tests/{name}" for name, file in members.items() if file}


def _digests(path: Path) -> set[str]:
    """Return the SHA-256 of a file, and of the members of a ZIP archive; empty if the file does not exist."""
    if not path.is_file():
        return set()
    with path.open("rb") as file:
        digests = {hashlib.file_digest(file, "sha256").hexdigest()}
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            digests |= {hashlib.sha256(archive.read(member)).hexdigest() for member in archive.namelist()}
    return digests
